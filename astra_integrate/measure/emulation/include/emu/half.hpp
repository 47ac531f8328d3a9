// The half and bfloat16 functions that the toolkit's headers give to device compilers only.
// Each computes in float (products exactly, in double) and rounds once to the 16-bit type.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>

#include "engine.hpp"

namespace emu {
inline float wide(__half x) { return __half2float(x); }
inline float wide(__nv_bfloat16 x) { return __bfloat162float(x); }
template <class T>
T narrow(double x) {
  if constexpr (std::is_same_v<T, __half>) return __double2half(x);
  else return __double2bfloat16(x);
}
}  // namespace emu

#define EMU_HALF_FUNCTION(name, expression)                                     \
  inline __half h##name(__half h) {                                             \
    float x = emu::wide(h);                                                     \
    return __float2half_rn(expression);                                         \
  }                                                                             \
  inline __nv_bfloat16 h##name(__nv_bfloat16 h) {                               \
    float x = emu::wide(h);                                                     \
    return __float2bfloat16_rn(expression);                                     \
  }                                                                             \
  inline __half2 h2##name(__half2 v) { return {h##name(v.x), h##name(v.y)}; }   \
  inline __nv_bfloat162 h2##name(__nv_bfloat162 v) { return {h##name(v.x), h##name(v.y)}; }
EMU_HALF_FUNCTION(ceil, std::ceil(x))
EMU_HALF_FUNCTION(floor, std::floor(x))
EMU_HALF_FUNCTION(trunc, std::trunc(x))
EMU_HALF_FUNCTION(rint, std::nearbyint(x))
EMU_HALF_FUNCTION(exp, std::exp(x))
EMU_HALF_FUNCTION(exp2, std::exp2(x))
EMU_HALF_FUNCTION(exp10, std::pow(10.0f, x))
EMU_HALF_FUNCTION(log, std::log(x))
EMU_HALF_FUNCTION(log2, std::log2(x))
EMU_HALF_FUNCTION(log10, std::log10(x))
EMU_HALF_FUNCTION(sin, std::sin(x))
EMU_HALF_FUNCTION(cos, std::cos(x))
EMU_HALF_FUNCTION(tanh, std::tanh(x))
EMU_HALF_FUNCTION(tanh_approx, std::tanh(x))
EMU_HALF_FUNCTION(sqrt, std::sqrt(x))
EMU_HALF_FUNCTION(rsqrt, 1.0f / std::sqrt(x))
EMU_HALF_FUNCTION(rcp, 1.0f / x)
#undef EMU_HALF_FUNCTION

#define EMU_HALF_FMA(T, T2)                                                                                \
  inline T __hfma(T a, T b, T c) {                                                                         \
    return emu::narrow<T>(static_cast<double>(emu::wide(a)) * emu::wide(b) + emu::wide(c));                \
  }                                                                                                        \
  inline T __hfma_relu(T a, T b, T c) {                                                                    \
    double r = static_cast<double>(emu::wide(a)) * emu::wide(b) + emu::wide(c);                            \
    return emu::narrow<T>(r > 0 || r != r ? r : 0.0);                                                      \
  }                                                                                                        \
  inline T2 __hfma2(T2 a, T2 b, T2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }           \
  inline T2 __hfma2_relu(T2 a, T2 b, T2 c) { return {__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)}; }
EMU_HALF_FMA(__half, __half2)
EMU_HALF_FMA(__nv_bfloat16, __nv_bfloat162)
#undef EMU_HALF_FMA

#define EMU_HALF_TO_INTEGER(suffix, To, round)                                                 \
  inline To __half2##suffix(__half h) { return emu::saturate<To>(round(emu::wide(h))); }        \
  inline To __bfloat162##suffix(__nv_bfloat16 h) { return emu::saturate<To>(round(emu::wide(h))); }
EMU_HALF_TO_INTEGER(int_rn, int, std::nearbyint)
EMU_HALF_TO_INTEGER(int_rd, int, std::floor)
EMU_HALF_TO_INTEGER(int_ru, int, std::ceil)
EMU_HALF_TO_INTEGER(uint_rn, unsigned, std::nearbyint)
EMU_HALF_TO_INTEGER(short_rn, short, std::nearbyint)
#undef EMU_HALF_TO_INTEGER
