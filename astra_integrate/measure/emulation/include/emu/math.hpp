// Device math that a host compiler does not have. The approximate functions follow the formulas of
// the CUDA programming guide ("Intrinsic Functions") in single precision, their special cases included.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "engine.hpp"

namespace emu {
template <class To, class From>
To bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
// Conversions saturate and turn NaN into 0 on the device; on the host they would be undefined.
template <class To, class From>
To saturate(From value) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  if (value >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  return static_cast<To>(value);
}
inline float flush(float x) { return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x; }
}  // namespace emu

// Global min and max, as nvcc has them: floats ignore NaN, integers convert as usual.
template <class A, class B>
  requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B>)
constexpr std::common_type_t<A, B> min(A a, B b) {
  using C = std::common_type_t<A, B>;
  if constexpr (std::is_same_v<C, float>) return __builtin_fminf(a, b);
  else if constexpr (std::is_same_v<C, double>) return __builtin_fmin(a, b);
  else return static_cast<C>(b) < static_cast<C>(a) ? static_cast<C>(b) : static_cast<C>(a);
}
template <class A, class B>
  requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B>)
constexpr std::common_type_t<A, B> max(A a, B b) {
  using C = std::common_type_t<A, B>;
  if constexpr (std::is_same_v<C, float>) return __builtin_fmaxf(a, b);
  else if constexpr (std::is_same_v<C, double>) return __builtin_fmax(a, b);
  else return static_cast<C>(a) < static_cast<C>(b) ? static_cast<C>(b) : static_cast<C>(a);
}

inline float rsqrtf(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return 1.0f / std::cbrt(x); }
inline float fdividef(float x, float y) { return x / y; }
inline float sinpif(float x) { return static_cast<float>(std::sin(M_PI * static_cast<double>(x))); }
inline float cospif(float x) { return static_cast<float>(std::cos(M_PI * static_cast<double>(x))); }
inline float normcdff(float x) { return static_cast<float>(0.5 * std::erfc(-static_cast<double>(x) * M_SQRT1_2)); }
inline float norm3df(float a, float b, float c) { return std::sqrt(a * a + b * b + c * c); }
inline void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
inline float __frsqrt_rn(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline float __exp2f(float x) { return emu::flush(exp2f(emu::flush(x))); }
inline float __expf(float x) { return __exp2f(x * 1.4426950408889634f); }
inline float __exp10f(float x) { return __exp2f(x * 3.3219280948873623f); }
inline float __log2f(float x) { return log2f(emu::flush(x)); }
inline float __logf(float x) { return __log2f(x) * 0.6931471805599453f; }
inline float __log10f(float x) { return __log2f(x) * 0.3010299956639812f; }
inline float __powf(float x, float y) { return __exp2f(y * __log2f(x)); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return __fdiv_rn(__sinf(x), __cosf(x)); }
inline void __sincosf(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
inline float __tanhf(float x) { return tanhf(x); }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
inline float __fdividef(float x, float y) {
  // For 2^126 < |y| < 2^128 the result is 0, or NaN for an infinite x.
  if (std::fabs(y) > 0x1p126f && !std::isinf(y) && !std::isnan(y)) return std::isinf(x) ? x * 0.0f : std::copysign(0.0f, x) * y;
  return emu::flush(x / y);
}

inline int __float_as_int(float x) { return emu::bits<int>(x); }
inline unsigned __float_as_uint(float x) { return emu::bits<unsigned>(x); }
inline float __int_as_float(int x) { return emu::bits<float>(x); }
inline float __uint_as_float(unsigned x) { return emu::bits<float>(x); }
inline long long __double_as_longlong(double x) { return emu::bits<long long>(x); }
inline double __longlong_as_double(long long x) { return emu::bits<double>(x); }
#define EMU_TO_INTEGER(name, To, round) \
  inline To name(float x) { return emu::saturate<To>(round(x)); }
EMU_TO_INTEGER(__float2int_rn, int, std::nearbyint)
EMU_TO_INTEGER(__float2int_rz, int, std::trunc)
EMU_TO_INTEGER(__float2int_rd, int, std::floor)
EMU_TO_INTEGER(__float2int_ru, int, std::ceil)
EMU_TO_INTEGER(__float2uint_rn, unsigned, std::nearbyint)
EMU_TO_INTEGER(__float2uint_rz, unsigned, std::trunc)
EMU_TO_INTEGER(__float2uint_rd, unsigned, std::floor)
EMU_TO_INTEGER(__float2uint_ru, unsigned, std::ceil)
EMU_TO_INTEGER(__float2ll_rn, long long, std::nearbyint)
EMU_TO_INTEGER(__float2ll_rz, long long, std::trunc)
#undef EMU_TO_INTEGER
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __int2float_rz(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline double __int2double_rn(int x) { return x; }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; ++i) r |= (x >> i & 1u) << (31 - i);
  return r;
}
inline int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(uint64_t{a} * b >> 32); }
inline int __mulhi(int a, int b) { return static_cast<int>(int64_t{a} * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  uint64_t both = uint64_t{y} << 32 | x;
  unsigned r = 0;
  for (int i = 0; i < 4; ++i) {
    unsigned s = selector >> (4 * i) & 0xF, byte = static_cast<unsigned>(both >> (8 * (s & 7)) & 0xFF);
    r |= (s & 8 ? (byte & 0x80 ? 0xFFu : 0u) : byte) << (8 * i);
  }
  return r;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  return static_cast<unsigned>((uint64_t{high} << 32 | low) << (by & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return static_cast<unsigned>((uint64_t{high} << 32 | low) >> (by & 31));
}
inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 4; ++i) c += static_cast<int8_t>(a >> (8 * i)) * static_cast<int8_t>(b >> (8 * i));
  return c;
}
inline long long clock64() { return 0; }
