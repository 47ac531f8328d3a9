"""Registration text in, ops with schema and function out."""

from __future__ import annotations

from astra_integrate.frameworks.torch_bindings import registrations

CLASSIC = """\
// TORCH_LIBRARY(in_a_comment, ops) { ops.def("no() -> ()"); }
TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {
  ops.def(
      "scale_rows(Tensor! out, Tensor input,"
      "  float gain=1.0) -> ()");
  ops.impl("scale_rows", torch::kCUDA, &detail::scale_rows);
  ops.impl("scale_rows", torch::kCPU, &scale_rows_cpu);
  ops.def("any_device(Tensor x) -> Tensor", &any_device);
  ops.def("size() -> int");
  ops.impl("size", &size_of);
#ifdef USE_ROCM
  ops.def("only_amd(Tensor x) -> ()");
  ops.impl("only_amd", torch::kCUDA, &only_amd);
#endif
}
TORCH_LIBRARY_EXPAND(CONCAT(TORCH_EXTENSION_NAME, _more), more) {
  more.def("copy_rows(Tensor x) -> ()");
  more.impl("copy_rows", torch::kCUDA, &copy_rows);
}
"""
STABLE = """\
STABLE_TORCH_LIBRARY_FRAGMENT(_X, ops) { ops.def("fold(Tensor x) -> Tensor"); ops.def("bare(Tensor x) -> ()"); }
STABLE_TORCH_LIBRARY_IMPL(_X, CUDA, ops) { ops.impl("fold", TORCH_BOX(&fold_all)); }
"""
ELSEWHERE = """\
STABLE_TORCH_LIBRARY_IMPL(_X, CUDA, m) { m.impl("bare", TORCH_BOX(&bare)); }
#define STABLE_TORCH_LIBRARY_IMPL(A, B, C) TORCH_LIBRARY_IMPL(A, B, C) { C.impl("no", &no); }
"""


def test_the_classic_form():
    found = {(r.namespace, r.op): r for r in registrations({"a.cpp": CLASSIC}, lambda path: "_C")}
    assert set(found) == {("_C", "scale_rows"), ("_C", "any_device"), ("_C", "size"), ("_C_more", "copy_rows")}
    scale = found["_C", "scale_rows"]
    assert scale.schema == "scale_rows(Tensor! out, Tensor input, float gain=1.0) -> ()"
    assert scale.host_function == "detail::scale_rows"
    assert scale.functions["CPU"] == "scale_rows_cpu"
    assert found["_C", "any_device"].host_function == "any_device"
    assert found["_C", "size"].host_function == "size_of"


def test_the_stable_form_over_two_files():
    found = {r.op: r for r in registrations({"a.cpp": STABLE, "b.cu": ELSEWHERE}, lambda path: "?")}
    assert set(found) == {"fold", "bare"}
    assert found["fold"].host_function == "fold_all"
    assert (found["bare"].schema, found["bare"].host_function) == ("bare(Tensor x) -> ()", "bare")
    assert found["bare"].files == ["a.cpp", "b.cu"]
