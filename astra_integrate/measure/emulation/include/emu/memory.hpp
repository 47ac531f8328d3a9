// Loads and stores with cache hints, atomics, address spaces.
#pragma once
#include <algorithm>

#include "engine.hpp"

namespace emu {

// Each is one access of the type's full width: the sanitizer checks its alignment.
template <class T>
T load(const T* p) { return *p; }

// The value type of what is added may differ (atomicAdd(float*, 1)): it converts first, as in CUDA's overloads.
template <class T, class F>
T exchange(T* p, F f) {
  T old = *p;
  *p = f(old);
  return old;
}
template <class T>
using Same = std::type_identity_t<T>;

}  // namespace emu

#define EMU_LOAD(name) \
  template <class T>   \
  T name(const T* p) { return emu::load(p); }
EMU_LOAD(__ldg)
EMU_LOAD(__ldca)
EMU_LOAD(__ldcg)
EMU_LOAD(__ldcs)
EMU_LOAD(__ldlu)
EMU_LOAD(__ldcv)
#undef EMU_LOAD
#define EMU_STORE(name) \
  template <class T>    \
  void name(T* p, emu::Same<T> value) { *p = value; }
EMU_STORE(__stwb)
EMU_STORE(__stcg)
EMU_STORE(__stcs)
EMU_STORE(__stwt)
#undef EMU_STORE

#define EMU_ATOMIC(name, expression)              \
  template <class T>                              \
  T name(T* p, emu::Same<T> v) {                  \
    return emu::exchange(p, [v](T old) -> T { return expression; }); \
  }                                               \
  template <class T>                              \
  T name##_block(T* p, emu::Same<T> v) { return name(p, v); } \
  template <class T>                              \
  T name##_system(T* p, emu::Same<T> v) { return name(p, v); }
EMU_ATOMIC(atomicAdd, old + v)
EMU_ATOMIC(atomicSub, old - v)
EMU_ATOMIC(atomicMin, v < old ? v : old)
EMU_ATOMIC(atomicMax, old < v ? v : old)
EMU_ATOMIC(atomicAnd, old& v)
EMU_ATOMIC(atomicOr, old | v)
EMU_ATOMIC(atomicXor, old ^ v)
EMU_ATOMIC(atomicExch, ((void)old, v))
EMU_ATOMIC(atomicInc, old >= v ? T(0) : old + 1)
EMU_ATOMIC(atomicDec, old == 0 || old > v ? v : old - 1)
#undef EMU_ATOMIC
template <class T>
T atomicCAS(T* p, emu::Same<T> compare, emu::Same<T> value) {
  T old = *p;
  // By bytes: floats and structs are compared so on the device too.
  if (!std::memcmp(&old, &compare, sizeof(T))) *p = value;
  return old;
}

inline size_t __cvta_generic_to_shared(const void* p) { return emu::shared_address(p); }
inline size_t __cvta_generic_to_global(const void* p) { return reinterpret_cast<size_t>(p); }
inline void* __cvta_shared_to_generic(size_t p) { return emu::shared_pointer(static_cast<uint32_t>(p)); }
inline unsigned __isGlobal(const void*) { return 1; }

// Asynchronous copies complete at once: a missing wait does not show.
inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zero_fill = 0) {
  std::memcpy(to, from, bytes - zero_fill);
  std::memset(static_cast<char*>(to) + bytes - zero_fill, 0, zero_fill);
}
inline void __pipeline_commit() {}
inline void __pipeline_wait_prior(size_t) {}
inline void cudaGridDependencySynchronize() {}
inline void cudaTriggerProgrammaticLaunchCompletion() {}
