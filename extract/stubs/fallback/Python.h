// Found only where Python's own headers are not installed: what a module's one-line registration needs.
#pragma once
#include <cstddef>
typedef struct _object PyObject;
struct PyModuleDef_Base {
  int unused;
};
#define PyModuleDef_HEAD_INIT \
  { 0 }
struct PyModuleDef {
  PyModuleDef_Base m_base;
  const char* m_name;
  const char* m_doc;
  std::ptrdiff_t m_size;
  void* m_methods;
};
#define PyMODINIT_FUNC extern "C" PyObject*
PyObject* PyModule_Create(PyModuleDef* definition);
