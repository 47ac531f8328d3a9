// Found only where cuRAND's real header is not installed: the names that kernels use, without the generators.
#pragma once
#include "curand.h"

struct curandStatePhilox4_32_10 {
  uint4 ctr;
  uint4 output;
  uint2 key;
  unsigned int STATE;
};
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;
struct curandStateXORWOW {
  unsigned int d;
  unsigned int v[5];
};
typedef curandStateXORWOW curandStateXORWOW_t;
typedef curandStateXORWOW curandState_t;
typedef curandStateXORWOW curandState;

template <class State>
__device__ void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset,
                            State* state);
template <class State>
__device__ unsigned int curand(State* state);
template <class State>
__device__ float curand_uniform(State* state);
template <class State>
__device__ float curand_normal(State* state);
template <class State>
__device__ uint4 curand4(State* state);
template <class State>
__device__ float4 curand_uniform4(State* state);
template <class State>
__device__ float4 curand_normal4(State* state);
