// Scalar types for a source whose torch has no header-only ones (before 2.9), or that needs no torch.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <cstring>
#include <limits>

namespace c10 {

// Bits with conversions to float and to CUDA's type; arithmetic goes through float and rounds once, as torch's does.
template <class Native, class Bits>
struct EmulatedFloat {
  Bits x;
  struct from_bits_t {};
  static constexpr from_bits_t from_bits() { return {}; }
  EmulatedFloat() = default;
  constexpr EmulatedFloat(Bits bits, from_bits_t) : x(bits) {}
  EmulatedFloat(float value) : EmulatedFloat(Native(value)) {}
  EmulatedFloat(const Native& value) { std::memcpy(&x, &value, sizeof x); }
  operator float() const { return static_cast<float>(native()); }
  explicit operator Native() const { return native(); }
  EmulatedFloat& operator+=(EmulatedFloat o) { return *this = float(*this) + float(o); }
  EmulatedFloat& operator-=(EmulatedFloat o) { return *this = float(*this) - float(o); }
  EmulatedFloat& operator*=(EmulatedFloat o) { return *this = float(*this) * float(o); }
  EmulatedFloat& operator/=(EmulatedFloat o) { return *this = float(*this) / float(o); }
  friend EmulatedFloat operator+(EmulatedFloat a, EmulatedFloat b) { return float(a) + float(b); }
  friend EmulatedFloat operator-(EmulatedFloat a, EmulatedFloat b) { return float(a) - float(b); }
  friend EmulatedFloat operator*(EmulatedFloat a, EmulatedFloat b) { return float(a) * float(b); }
  friend EmulatedFloat operator/(EmulatedFloat a, EmulatedFloat b) { return float(a) / float(b); }
  friend EmulatedFloat operator-(EmulatedFloat a) { return -float(a); }
  friend float operator+(EmulatedFloat a, float b) { return float(a) + b; }
  friend float operator-(EmulatedFloat a, float b) { return float(a) - b; }
  friend float operator*(EmulatedFloat a, float b) { return float(a) * b; }
  friend float operator/(EmulatedFloat a, float b) { return float(a) / b; }
  friend float operator+(float a, EmulatedFloat b) { return a + float(b); }
  friend float operator-(float a, EmulatedFloat b) { return a - float(b); }
  friend float operator*(float a, EmulatedFloat b) { return a * float(b); }
  friend float operator/(float a, EmulatedFloat b) { return a / float(b); }

 private:
  Native native() const {
    Native value;
    std::memcpy(static_cast<void*>(&value), &x, sizeof x);
    return value;
  }
};

struct Half : EmulatedFloat<__half, uint16_t> {
  using EmulatedFloat::EmulatedFloat;
  Half() = default;
  Half(EmulatedFloat<__half, uint16_t> v) : EmulatedFloat(v) {}
};
struct BFloat16 : EmulatedFloat<__nv_bfloat16, uint16_t> {
  using EmulatedFloat::EmulatedFloat;
  BFloat16() = default;
  BFloat16(EmulatedFloat<__nv_bfloat16, uint16_t> v) : EmulatedFloat(v) {}
};
struct Float8_e4m3fn : EmulatedFloat<__nv_fp8_e4m3, uint8_t> {
  using EmulatedFloat::EmulatedFloat;
  Float8_e4m3fn() = default;
};
struct Float8_e5m2 : EmulatedFloat<__nv_fp8_e5m2, uint8_t> {
  using EmulatedFloat::EmulatedFloat;
  Float8_e5m2() = default;
};
struct Float8_e4m3fnuz {
  uint8_t x;
};

enum class ScalarType : int8_t {
  Byte, Char, Short, Int, Long, Half, Float, Double, Bool = 11, BFloat16 = 15, Float8_e5m2 = 23, Float8_e4m3fn = 24,
  Float8_e4m3fnuz = 26, UInt16 = 27, UInt32 = 28, UInt64 = 29, Undefined = 127
};

}  // namespace c10

namespace at {
using c10::BFloat16;
using c10::Half;
}  // namespace at
