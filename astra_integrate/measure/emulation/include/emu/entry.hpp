// Calls the op's host function with what the worker handed over: one conversion per parameter type.
#pragma once
#include "host.hpp"
#include "tensor.hpp"

namespace emu {

inline Tensor tensor_of(const emu_argument& a) {
  if (a.kind != 1) throw std::invalid_argument("a tensor parameter got something else");
  return Tensor(a.data, {a.sizes, a.sizes + a.dims}, {a.strides, a.strides + a.dims}, type_named(a.dtype));
}

// Holds the value that a parameter of type P binds to.
template <class P>
struct Bound;
template <>
struct Bound<Tensor> {
  Tensor value;
  explicit Bound(const emu_argument& a) : value(tensor_of(a)) {}
};
template <class T>
  requires std::is_arithmetic_v<T>
struct Bound<T> {
  T value;
  explicit Bound(const emu_argument& a) : value(a.kind == 2 ? static_cast<T>(a.real) : static_cast<T>(a.integer)) {
    if (a.kind != 2 && a.kind != 3) throw std::invalid_argument("a number parameter got something else");
  }
};
template <>
struct Bound<std::string> {
  std::string value;
  explicit Bound(const emu_argument& a) : value(a.kind == 4 ? a.text : "") {}
};
template <>
struct Bound<c10::IntArrayRef> {
  c10::IntArrayRef value;
  explicit Bound(const emu_argument& a) : value(a.sizes, static_cast<size_t>(a.kind == 5 ? a.dims : 0)) {}
};
template <>
struct Bound<std::vector<int64_t>> {
  std::vector<int64_t> value;
  explicit Bound(const emu_argument& a) : value(a.sizes, a.sizes + (a.kind == 5 ? a.dims : 0)) {}
};
template <>
struct Bound<ScalarType> {
  ScalarType value;
  explicit Bound(const emu_argument& a) : value(type_named(a.text)) {}
};
template <class T>
struct Bound<std::optional<T>> {
  std::optional<T> value;
  explicit Bound(const emu_argument& a) {
    if (a.kind != 0) value = Bound<T>(a).value;
  }
};

template <class R, class... P, size_t... I>
int call(R (*function)(P...), const emu_argument* arguments, int count, std::index_sequence<I...>) {
  if (count < static_cast<int>(sizeof...(P))) {
    note("the op takes %zu arguments, the workload gives %d", sizeof...(P), count);
    return 3;
  }
  std::tuple<Bound<std::remove_cvref_t<P>>...> bound{Bound<std::remove_cvref_t<P>>(arguments[I])...};
  if constexpr (std::is_same_v<R, Tensor>) {
    // A returned tensor goes to the argument after the op's own.
    Tensor result = function(static_cast<P>(std::get<I>(bound).value)...);
    if (count > static_cast<int>(sizeof...(P))) tensor_of(arguments[sizeof...(P)]).copy_(result);
  } else {
    function(static_cast<P>(std::get<I>(bound).value)...);
  }
  return 0;
}

template <class R, class... P>
int enter(R (*function)(P...), const emu_argument* arguments, int count) {
  try {
    if (int code = call(function, arguments, count, std::index_sequence_for<P...>{})) return code;
  } catch (const std::invalid_argument& error) {
    note("%s", error.what());
    return 3;
  } catch (const std::exception& error) {
    note("%s", error.what());
    return 1;
  }
  if (tail_unreached()) {
    note("the launch has fewer blocks than rows, so that the last rows can't be run alone");
    return 4;
  }
  if (cudaError_t error = cudaGetLastError()) {
    note("after the call: %s", cudaGetErrorString(error));
    return 2;
  }
  return 0;
}

}  // namespace emu
