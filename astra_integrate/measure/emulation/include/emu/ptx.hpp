// What inline assembly is rewritten to (see ptx.py): the instructions that kernels use most, as functions.
#pragma once
#include <cmath>

#include "engine.hpp"
#include "math.hpp"
#include "memory.hpp"
#include "warp.hpp"

namespace emu::ptx {

// The kernel may hold assembly that no emulated path reaches, so only running it counts.
[[noreturn]] inline void unknown(const char* instruction) {
  static char text[160];
  snprintf(text, sizeof text, "the PTX instruction '%s'", instruction);
  lacks(text);
}


template <class T>
T* pointer(T* p) { return p; }
template <class T>
  requires std::is_integral_v<T>
void* pointer(T address) {
  if constexpr (sizeof(T) < sizeof(void*)) return shared_pointer(static_cast<uint32_t>(address));
  else return reinterpret_cast<void*>(static_cast<uintptr_t>(address));
}
template <class N>
void* shift(const void* p, N bytes) { return static_cast<char*>(const_cast<void*>(p)) + bytes; }

inline void aligned(const void* p, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(p) % bytes)
    crash("misaligned access of %zu bytes at %p by an inline PTX instruction", bytes, const_cast<void*>(p));
}
template <size_t Width, class... T>
void load(const void* address, T&... out) {
  const char* p = static_cast<const char*>(address);
  aligned(p, Width * sizeof...(T));
  ((out = T{}, std::memcpy(&out, p, Width < sizeof(T) ? Width : sizeof(T)), p += Width), ...);
}
template <size_t Width, class... T>
void store(const void* address, const T&... in) {
  char* p = static_cast<char*>(const_cast<void*>(address));
  aligned(p, Width * sizeof...(T));
  ((std::memcpy(p, &in, Width), p += Width), ...);
}
// Registers are untyped bits: what differs in type but not in size is copied, the rest converts.
template <class To, class From>
void assign(To& to, const From& from) {
  if constexpr (sizeof(To) == sizeof(From) && !(std::is_integral_v<To> && std::is_integral_v<From>)) std::memcpy(&to, &from, sizeof to);
  else to = static_cast<To>(from);
}
template <class To, class... From>
void join(To& to, const From&... from) {
  static_assert(sizeof(To) == (sizeof(From) + ...));
  char* p = reinterpret_cast<char*>(&to);
  ((std::memcpy(p, &from, sizeof from), p += sizeof from), ...);
}
template <class From, class... To>
void split(const From& from, To&... to) {
  static_assert(sizeof(From) == (sizeof(To) + ...));
  const char* p = reinterpret_cast<const char*>(&from);
  ((std::memcpy(&to, p, sizeof to), p += sizeof to), ...);
}
inline void copy(void* to, const void* from, size_t bytes) {
  aligned(to, bytes);
  aligned(from, bytes);
  std::memcpy(to, from, bytes);
}
inline void copy(void* to, const void* from, size_t bytes, size_t given) {
  aligned(to, bytes);
  std::memset(to, 0, bytes);
  if (given) copy(to, from, given < bytes ? given : bytes);
}

template <class To>
To to_integer(float x, char how) {
  return saturate<To>(how == 'n' ? std::nearbyint(x) : how == 'z' ? std::trunc(x) : how == 'm' ? std::floor(x) : std::ceil(x));
}
inline uint16_t float_to_half(float x) { return bits<uint16_t>(__float2half_rn(x)); }
inline float half_to_float(uint16_t h) { return __half2float(bits<__half>(h)); }
inline uint16_t float_to_bfloat(float x) { return bits<uint16_t>(__float2bfloat16_rn(x)); }
// The first operand is the upper half (PTX ISA, "cvt").
inline uint32_t floats_to_half2(float high, float low) { return uint32_t{float_to_half(high)} << 16 | float_to_half(low); }
inline uint32_t floats_to_bfloat2(float high, float low) { return uint32_t{float_to_bfloat(high)} << 16 | float_to_bfloat(low); }
inline uint16_t add_half(uint16_t a, uint16_t b) { return float_to_half(half_to_float(a) + half_to_float(b)); }
inline uint16_t multiply_half(uint16_t a, uint16_t b) { return float_to_half(half_to_float(a) * half_to_float(b)); }
template <class F>
uint32_t both(F f) { return uint32_t{f(16)} << 16 | f(0); }
inline uint16_t part(uint32_t v, int shift) { return static_cast<uint16_t>(v >> shift); }
inline uint32_t add_half2(uint32_t a, uint32_t b) {
  return both([=](int s) { return add_half(part(a, s), part(b, s)); });
}
inline uint32_t multiply_half2(uint32_t a, uint32_t b) {
  return both([=](int s) { return multiply_half(part(a, s), part(b, s)); });
}
inline uint32_t fma_half2(uint32_t a, uint32_t b, uint32_t c) {
  return both([=](int s) {
    return bits<uint16_t>(__hfma(bits<__half>(part(a, s)), bits<__half>(part(b, s)), bits<__half>(part(c, s))));
  });
}
inline float exp2(float x) { return __exp2f(x); }
inline float log2(float x) { return __log2f(x); }
inline float reciprocal(float x) { return flush(1.0f / x); }
inline float reciprocal_root(float x) { return 1.0f / std::sqrt(x); }
inline float root(float x) { return std::sqrt(x); }
inline float tanh(float x) { return tanhf(x); }
inline uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) { return __byte_perm(a, b, selector); }

}  // namespace emu::ptx
