// What nvcc has built in and clang's CUDA mode has not. Included before every unit that astra parses;
// it is never compiled into anything. __NVCC__ itself stays undefined: headers would then expect the
// compiler's own built-in declarations.
#pragma once

#include <cstdint>
#include <new>
#include <type_traits>

// CUTLASS leaves out its sm_90 builders for a compiler that doesn't say which nvcc it is.
#ifndef __CUDACC_VER_MAJOR__
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDACC_VER_BUILD__ 88
#endif

// Without __NVCC__, cooperative_groups hides this_cluster() behind this.
#define _CG_CLUSTER_INTRINSICS_AVAILABLE 1

// nvcc has min and max of mixed arithmetic types in the global namespace on the host as well.
template <class A, class B>
static inline __host__
    std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>, std::common_type_t<A, B>>
    max(A a, B b) {
  using C = std::common_type_t<A, B>;
  return C(a) < C(b) ? C(b) : C(a);
}
template <class A, class B>
static inline __host__
    std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>, std::common_type_t<A, B>>
    min(A a, B b) {
  using C = std::common_type_t<A, B>;
  return C(b) < C(a) ? C(b) : C(a);
}

// Loads and stores with a cache hint that clang's intrinsics header leaves out.
#define ASTRA_HINTED_LOAD(name) \
  template <class T>            \
  __device__ inline T name(const T* address) { return *address; }
#define ASTRA_HINTED_STORE(name) \
  template <class T, class U>    \
  __device__ inline void name(T* address, U value) { *address = value; }
ASTRA_HINTED_LOAD(__ldca)
ASTRA_HINTED_LOAD(__ldlu)
ASTRA_HINTED_LOAD(__ldcv)
ASTRA_HINTED_STORE(__stcg)
ASTRA_HINTED_STORE(__stwb)
ASTRA_HINTED_STORE(__stcs)
ASTRA_HINTED_STORE(__stwt)
#undef ASTRA_HINTED_LOAD
#undef ASTRA_HINTED_STORE
