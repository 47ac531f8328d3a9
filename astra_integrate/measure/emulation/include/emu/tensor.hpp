// A small stand-in for the tensors that a host launcher handles: a view of memory with sizes, strides
// and type, for both of torch's C++ interfaces (at/torch/c10 and torch::stable).
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "engine.hpp"
#include "host.hpp"

// The scalar types are torch's own header-only ones, with their conversions to CUDA's types switched on.
#if __has_include(<torch/headeronly/core/ScalarType.h>)
#define __CUDACC__ 1
#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>
#undef __CUDACC__
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>
#include <torch/headeronly/util/shim_utils.h>
#if __has_include(<torch/headeronly/util/HeaderOnlyArrayRef.h>)
#include <torch/headeronly/util/HeaderOnlyArrayRef.h>
#define EMU_ARRAY_REF 1
#endif
#if __has_include(<torch/headeronly/core/Dispatch.h>)
#include <torch/headeronly/core/Dispatch.h>
#endif
#if __has_include(<torch/headeronly/core/DeviceType.h>)
#include <torch/headeronly/core/DeviceType.h>
#define EMU_DEVICE_TYPE 1
#endif
#if __has_include(<torch/headeronly/core/Layout.h>)
#include <torch/headeronly/core/Layout.h>
#include <torch/headeronly/core/MemoryFormat.h>
#define EMU_LAYOUT 1
#endif
#else
#include "scalar_type.hpp"
#endif

#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace c10 {
#ifdef EMU_ARRAY_REF
template <class T>
using ArrayRef = HeaderOnlyArrayRef<T>;
#else
template <class T>
class ArrayRef {
 public:
  ArrayRef() = default;
  ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  ArrayRef(const std::vector<T>& v) : data_(v.data()), size_(v.size()) {}
  ArrayRef(std::initializer_list<T> v) : data_(v.begin()), size_(v.size()) {}
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](size_t i) const { return data_[i]; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T* data() const { return data_; }
  std::vector<T> vec() const { return {begin(), end()}; }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};
#endif
using IntArrayRef = ArrayRef<int64_t>;
#ifndef EMU_DEVICE_TYPE
enum class DeviceType : int8_t { CPU = 0, CUDA = 1 };
#endif
#ifndef EMU_LAYOUT
enum class MemoryFormat : int8_t { Contiguous };
enum class Layout : int8_t { Strided };
#endif
using DeviceIndex = int8_t;
struct Device {
  DeviceType type_ = DeviceType::CUDA;
  DeviceIndex index_ = 0;
  Device() = default;
  Device(DeviceType type, DeviceIndex index = 0) : type_(type), index_(index) {}
  DeviceType type() const { return type_; }
  DeviceIndex index() const { return index_; }
  bool is_cuda() const { return type_ == DeviceType::CUDA; }
  bool is_cpu() const { return type_ == DeviceType::CPU; }
  bool operator==(const Device& other) const { return type_ == other.type_ && index_ == other.index_; }
  bool operator!=(const Device& other) const { return !(*this == other); }
};
inline std::ostream& operator<<(std::ostream& out, const Device& d) { return out << (d.is_cuda() ? "cuda" : "cpu"); }
}  // namespace c10

namespace emu {

using c10::ScalarType;

size_t element_bytes(ScalarType type);
const char* type_name(ScalarType type);
ScalarType type_named(const char* name);

template <class T>
struct Scalar;
#define EMU_SCALAR(T, name)                                  \
  template <>                                                \
  struct Scalar<T> {                                         \
    static constexpr ScalarType value = ScalarType::name;    \
  };
EMU_SCALAR(uint8_t, Byte)
EMU_SCALAR(int8_t, Char)
EMU_SCALAR(int16_t, Short)
EMU_SCALAR(int32_t, Int)
EMU_SCALAR(int64_t, Long)
EMU_SCALAR(long long, Long)
EMU_SCALAR(float, Float)
EMU_SCALAR(double, Double)
EMU_SCALAR(bool, Bool)
EMU_SCALAR(c10::Half, Half)
EMU_SCALAR(c10::BFloat16, BFloat16)
EMU_SCALAR(c10::Float8_e4m3fn, Float8_e4m3fn)
EMU_SCALAR(c10::Float8_e5m2, Float8_e5m2)
#undef EMU_SCALAR

template <ScalarType S>
struct Type;
#define EMU_TYPE(name, T)               \
  template <>                           \
  struct Type<ScalarType::name> {       \
    using type = T;                     \
  };
EMU_TYPE(Byte, uint8_t)
EMU_TYPE(Char, int8_t)
EMU_TYPE(Short, int16_t)
EMU_TYPE(Int, int32_t)
EMU_TYPE(Long, int64_t)
EMU_TYPE(Float, float)
EMU_TYPE(Double, double)
EMU_TYPE(Bool, bool)
EMU_TYPE(Half, c10::Half)
EMU_TYPE(BFloat16, c10::BFloat16)
EMU_TYPE(Float8_e4m3fn, c10::Float8_e4m3fn)
EMU_TYPE(Float8_e4m3fnuz, c10::Float8_e4m3fnuz)
EMU_TYPE(Float8_e5m2, c10::Float8_e5m2)
EMU_TYPE(UInt16, uint16_t)
EMU_TYPE(UInt32, uint32_t)
EMU_TYPE(UInt64, uint64_t)
#undef EMU_TYPE

// What `tensor.dtype()` gives: compares with and converts to a ScalarType.
struct TypeMeta {
  ScalarType type;
  operator ScalarType() const { return type; }
  ScalarType toScalarType() const { return type; }
  size_t itemsize() const { return element_bytes(type); }
  const char* name() const { return type_name(type); }
};
inline std::ostream& operator<<(std::ostream& out, const TypeMeta& t) { return out << type_name(t.type); }

struct Options {
  ScalarType type = ScalarType::Float;
  c10::Device place;
  Options() = default;
  Options(ScalarType t) : type(t) {}
  Options(c10::Device d) : place(d) {}
  Options dtype(ScalarType t) const {
    Options o = *this;
    o.type = t;
    return o;
  }
  Options device(c10::Device d) const {
    Options o = *this;
    o.place = d;
    return o;
  }
  TypeMeta dtype() const { return {type}; }
  c10::Device device() const { return place; }
};

class Tensor {
 public:
  Tensor() = default;
  Tensor(void* data, std::vector<int64_t> sizes, std::vector<int64_t> strides, ScalarType type)
      : data_(static_cast<char*>(data)), sizes_(std::move(sizes)), strides_(std::move(strides)), type_(type), defined_(true) {}

  bool defined() const { return defined_; }
  int64_t dim() const { return static_cast<int64_t>(sizes_.size()); }
  int64_t ndimension() const { return dim(); }
  int64_t size(int64_t d) const { return sizes_[wrap(d)]; }
  int64_t stride(int64_t d) const { return strides_[wrap(d)]; }
  c10::IntArrayRef sizes() const { return c10::IntArrayRef(sizes_.data(), sizes_.size()); }
  c10::IntArrayRef strides() const { return c10::IntArrayRef(strides_.data(), strides_.size()); }
  int64_t numel() const;
  size_t nbytes() const { return static_cast<size_t>(numel()) * element_size(); }
  size_t element_size() const { return element_bytes(type_); }
  size_t itemsize() const { return element_size(); }
  int64_t storage_offset() const { return 0; }
  ScalarType scalar_type() const { return type_; }
  TypeMeta dtype() const { return {type_}; }
  c10::Device device() const { return {}; }
  int8_t get_device() const { return 0; }
  int8_t get_device_index() const { return 0; }
  bool is_cuda() const { return true; }
  bool is_cpu() const { return false; }
  Options options() const { return Options(type_); }
  bool is_contiguous(c10::MemoryFormat = c10::MemoryFormat::Contiguous) const;

  void* data_ptr() const { return data_; }
  void* mutable_data_ptr() const { return data_; }
  const void* const_data_ptr() const { return data_; }
  template <class T>
  T* data_ptr() const { return static_cast<T*>(checked<std::remove_cv_t<T>>()); }
  template <class T>
  T* mutable_data_ptr() const { return static_cast<T*>(checked<std::remove_cv_t<T>>()); }
  template <class T>
  const T* const_data_ptr() const { return static_cast<const T*>(checked<std::remove_cv_t<T>>()); }

  Tensor contiguous() const;
  Tensor clone() const;
  Tensor view(std::vector<int64_t> sizes) const;
  Tensor reshape(std::vector<int64_t> sizes) const { return (is_contiguous() ? *this : contiguous()).view(std::move(sizes)); }
  Tensor view(c10::IntArrayRef sizes) const { return view(std::vector<int64_t>(sizes.begin(), sizes.end())); }
  Tensor view(std::initializer_list<int64_t> sizes) const { return view(std::vector<int64_t>(sizes)); }
  Tensor flatten() const { return reshape({numel()}); }
  Tensor squeeze(int64_t d) const;
  Tensor unsqueeze(int64_t d) const;
  Tensor transpose(int64_t a, int64_t b) const;
  Tensor narrow(int64_t d, int64_t start, int64_t length) const;
  Tensor& zero_();
  Tensor& copy_(const Tensor& from);

 private:
  size_t wrap(int64_t d) const;
  template <class T>
  void* checked() const {
    if constexpr (requires { Scalar<T>::value; })
      if (type_ != Scalar<T>::value)
        throw std::runtime_error(std::string("expected scalar type ") + type_name(Scalar<T>::value) + " but found " + type_name(type_));
    return data_;
  }
  char* data_ = nullptr;
  std::vector<int64_t> sizes_, strides_;
  ScalarType type_ = ScalarType::Undefined;
  bool defined_ = false;
};

Tensor empty(const std::vector<int64_t>& sizes, ScalarType type);
Tensor zeros(const std::vector<int64_t>& sizes, ScalarType type);

}  // namespace emu
