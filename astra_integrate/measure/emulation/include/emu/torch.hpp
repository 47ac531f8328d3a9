// The names under which host launchers know the tensor stand-in: at::, torch::, c10:: and torch::stable::.
#pragma once
#include "tensor.hpp"

using cublasHandle_t = void*;

namespace emu {
template <class... A>
std::string text(const A&... parts) {
  std::ostringstream out;
  [[maybe_unused]] auto put = [&](const auto& part) {
    if constexpr (std::is_same_v<std::decay_t<decltype(part)>, ScalarType>) out << type_name(part);
    else if constexpr (requires { out << part; }) out << part;
  };
  (put(parts), ...);
  return out.str();
}
struct Stream {
  operator cudaStream_t() const { return nullptr; }
  cudaStream_t stream() const { return nullptr; }
  int64_t id() const { return 0; }
};
struct Guard {
  template <class... A>
  explicit Guard(A&&...) {}
};
struct Scalar_ {
  double value;
  Scalar_(double v) : value(v) {}
};
Tensor full(const std::vector<int64_t>& sizes, double value, ScalarType type);
inline std::vector<int64_t> list(c10::IntArrayRef sizes) { return {sizes.begin(), sizes.end()}; }
inline void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(std::string("CUDA error: ") + cudaGetErrorString(error));
}
}  // namespace emu

#define TORCH_CHECK(condition, ...)                                                                              \
  if (!(condition)) {                                                                                            \
    throw std::runtime_error(::emu::text("" __VA_OPT__(, ) __VA_ARGS__).empty() ? std::string("Expected " #condition) \
                                                                              : ::emu::text("" __VA_OPT__(, ) __VA_ARGS__)); \
  }
#define TORCH_CHECK_NOT_IMPLEMENTED TORCH_CHECK
#define TORCH_CHECK_VALUE TORCH_CHECK
#define TORCH_INTERNAL_ASSERT TORCH_CHECK
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK((a) == (b), #a " == " #b)
#define TORCH_CHECK_GE(a, b) TORCH_CHECK((a) >= (b), #a " >= " #b)
#define TORCH_CHECK_LE(a, b) TORCH_CHECK((a) <= (b), #a " <= " #b)
#define TORCH_WARN(...)
#define TORCH_WARN_ONCE(...)
#define AT_CUDA_CHECK(expression) ::emu::check(expression)
#define C10_CUDA_CHECK(expression) ::emu::check(expression)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() ::emu::check(cudaGetLastError())
#define STD_CUDA_CHECK(expression) ::emu::check(expression)
#define STD_CUDA_KERNEL_LAUNCH_CHECK() ::emu::check(cudaGetLastError())
#define TORCH_TARGET_VERSION_EMULATED 1
#ifndef STD_TORCH_CHECK
#define STD_TORCH_CHECK TORCH_CHECK
#endif
#ifndef TORCH_ERROR_CODE_CHECK
#define TORCH_ERROR_CODE_CHECK(call) TORCH_CHECK((call) == 0, #call)
#endif

#define AT_PRIVATE_CASE_TYPE_USING_HINT(enum_type, HINT, ...)           \
  case enum_type: {                                                     \
    using HINT [[maybe_unused]] = typename ::emu::Type<enum_type>::type; \
    return __VA_ARGS__();                                               \
  }
#define AT_DISPATCH_CASE(enum_type, ...) AT_PRIVATE_CASE_TYPE_USING_HINT(enum_type, scalar_t, __VA_ARGS__)
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                                                                     \
  [&] {                                                                                                         \
    c10::ScalarType emu_type = TYPE;                                                                            \
    switch (emu_type) {                                                                                         \
      __VA_ARGS__                                                                                               \
      default:                                                                                                  \
        throw std::runtime_error(std::string("\"") + NAME + "\" not implemented for " + emu::type_name(emu_type)); \
    }                                                                                                           \
  }()
#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...)                                                     \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE(c10::ScalarType::Double, __VA_ARGS__)                 \
                                     AT_DISPATCH_CASE(c10::ScalarType::Float, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(A, B, TYPE, NAME, ...)                                          \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE(c10::ScalarType::Double, __VA_ARGS__)                 \
                                     AT_DISPATCH_CASE(c10::ScalarType::Float, __VA_ARGS__)              \
                                         AT_DISPATCH_CASE(A, __VA_ARGS__) AT_DISPATCH_CASE(B, __VA_ARGS__))

namespace c10 {
using emu::Tensor;
using TensorOptions = emu::Options;
namespace cuda {
using OptionalCUDAGuard = emu::Guard;
using CUDAGuard = emu::Guard;
using CUDAStream = emu::Stream;
inline emu::Stream getCurrentCUDAStream(int = -1) { return {}; }
inline int current_device() { return 0; }
}  // namespace cuda
inline std::optional<Device> device_of(const Tensor& t) { return t.defined() ? std::optional<Device>(t.device()) : std::nullopt; }
constexpr auto kByte = ScalarType::Byte, kChar = ScalarType::Char, kShort = ScalarType::Short, kInt = ScalarType::Int,
               kLong = ScalarType::Long, kHalf = ScalarType::Half, kFloat = ScalarType::Float, kDouble = ScalarType::Double,
               kBool = ScalarType::Bool, kBFloat16 = ScalarType::BFloat16, kFloat8_e4m3fn = ScalarType::Float8_e4m3fn,
               kUInt8 = kByte, kInt8 = kChar, kInt16 = kShort, kInt32 = kInt, kInt64 = kLong, kFloat16 = kHalf,
               kFloat32 = kFloat, kFloat64 = kDouble;
#ifndef EMU_DEVICE_TYPE
constexpr auto kCUDA = DeviceType::CUDA, kCPU = DeviceType::CPU;
#endif

inline Tensor empty(IntArrayRef sizes, const TensorOptions& o = {}) { return emu::empty(emu::list(sizes), o.type); }
inline Tensor zeros(IntArrayRef sizes, const TensorOptions& o = {}) { return emu::zeros(emu::list(sizes), o.type); }
inline Tensor full(IntArrayRef sizes, double value, const TensorOptions& o = {}) {
  return emu::full(emu::list(sizes), value, o.type);
}
inline Tensor empty_like(const Tensor& t) { return emu::empty(emu::list(t.sizes()), t.scalar_type()); }
inline Tensor empty_like(const Tensor& t, const TensorOptions& o) { return emu::empty(emu::list(t.sizes()), o.type); }
inline Tensor zeros_like(const Tensor& t) { return emu::zeros(emu::list(t.sizes()), t.scalar_type()); }
inline TensorOptions dtype(ScalarType type) { return TensorOptions(type); }
}  // namespace c10

namespace at {
using namespace c10;
namespace cuda {
using namespace c10::cuda;
inline cudaDeviceProp* getCurrentDeviceProperties() { return &emu::device(); }
inline cudaDeviceProp* getDeviceProperties(int) { return &emu::device(); }
}  // namespace cuda
}  // namespace at
using c10::device_of;

namespace torch {
using namespace c10;
using c10::Device;
using c10::ScalarType;
using c10::Tensor;
namespace cuda {
using namespace c10::cuda;
}
#ifndef EMU_ARRAY_REF
namespace headeronly {
using IntHeaderOnlyArrayRef = c10::IntArrayRef;
}
#endif

namespace stable {
using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using emu::Tensor;
using Sizes = c10::IntArrayRef;
using Type = std::optional<ScalarType>;
inline Tensor empty(Sizes sizes, Type type = {}, std::optional<c10::Layout> = {}, std::optional<Device> = {},
                    std::optional<bool> = {}, std::optional<c10::MemoryFormat> = {}) {
  return emu::empty(emu::list(sizes), type.value_or(ScalarType::Float));
}
inline Tensor empty_like(const Tensor& t) { return c10::empty_like(t); }
inline Tensor new_empty(const Tensor& t, Sizes sizes, Type type = {}, std::optional<c10::Layout> = {}, std::optional<Device> = {},
                        std::optional<bool> = {}) {
  return emu::empty(emu::list(sizes), type.value_or(t.scalar_type()));
}
inline Tensor new_zeros(const Tensor& t, Sizes sizes, Type type = {}, std::optional<c10::Layout> = {}, std::optional<Device> = {},
                        std::optional<bool> = {}) {
  return emu::zeros(emu::list(sizes), type.value_or(t.scalar_type()));
}
inline Tensor contiguous(const Tensor& t, c10::MemoryFormat = c10::MemoryFormat::Contiguous) { return t.contiguous(); }
inline Tensor view(const Tensor& t, Sizes sizes) { return t.view(sizes); }
inline Tensor reshape(const Tensor& t, Sizes sizes) { return t.reshape(emu::list(sizes)); }
inline Tensor clone(const Tensor& t) { return t.clone(); }
inline Tensor transpose(const Tensor& t, int64_t a, int64_t b) { return t.transpose(a, b); }
inline Tensor narrow(const Tensor& t, int64_t d, int64_t start, int64_t length) { return t.narrow(d, start, length); }
inline Tensor squeeze(const Tensor& t, int64_t d) { return t.squeeze(d); }
inline Tensor unsqueeze(const Tensor& t, int64_t d) { return t.unsqueeze(d); }
inline Tensor zero_(Tensor& t) { return t.zero_(); }
inline Tensor copy_(Tensor& t, const Tensor& from, std::optional<bool> = {}) { return t.copy_(from); }
namespace accelerator {
using DeviceGuard = emu::Guard;
using DeviceIndex = c10::DeviceIndex;
inline emu::Stream getCurrentStream(int = -1) { return {}; }
inline int getCurrentDeviceIndex() { return 0; }
}  // namespace accelerator
}  // namespace stable
}  // namespace torch

// The C functions below torch's stable interface that launchers call directly.
extern "C" {
inline int aoti_torch_get_current_cuda_stream(int32_t, void** stream) { return *stream = nullptr, 0; }
inline int torch_get_current_cuda_blas_handle(void**) { emu::lacks("cuBLAS"); }
}
