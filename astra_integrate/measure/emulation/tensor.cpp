// The few tensor operations that host launchers use. Allocations have guard pages and start as poison.
#include "emu/tensor.hpp"

namespace emu {
namespace {
struct Named {
  const char* name;
  ScalarType type;
  size_t bytes;
};
constexpr Named named[] = {
    {"float32", ScalarType::Float, 4},      {"float16", ScalarType::Half, 2},
    {"bfloat16", ScalarType::BFloat16, 2},  {"float8_e4m3fn", ScalarType::Float8_e4m3fn, 1},
    {"float8_e5m2", ScalarType::Float8_e5m2, 1}, {"int8", ScalarType::Char, 1},
    {"uint8", ScalarType::Byte, 1},         {"int16", ScalarType::Short, 2},
    {"int32", ScalarType::Int, 4},          {"int64", ScalarType::Long, 8},
    {"bool", ScalarType::Bool, 1},          {"float64", ScalarType::Double, 8},
};
std::vector<int64_t> dense(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= sizes[i] > 1 ? sizes[i] : 1;
  }
  return strides;
}
}  // namespace

size_t element_bytes(ScalarType type) {
  for (const Named& n : named)
    if (n.type == type) return n.bytes;
  lacks("tensors of this scalar type");
}
const char* type_name(ScalarType type) {
  for (const Named& n : named)
    if (n.type == type) return n.name;
  return "unknown";
}
ScalarType type_named(const char* name) {
  for (const Named& n : named)
    if (!std::strcmp(n.name, name)) return n.type;
  lacks("tensors of this scalar type");
}

size_t Tensor::wrap(int64_t d) const {
  int64_t n = dim();
  if (d < -n || d >= n) throw std::runtime_error("Dimension out of range (got " + std::to_string(d) + ")");
  return static_cast<size_t>(d < 0 ? d + n : d);
}
int64_t Tensor::numel() const {
  int64_t n = 1;
  for (int64_t s : sizes_) n *= s;
  return n;
}
bool Tensor::is_contiguous(c10::MemoryFormat) const {
  int64_t step = 1;
  if (numel() == 0) return true;
  for (size_t i = sizes_.size(); i-- > 0;) {
    if (sizes_[i] == 1) continue;
    if (strides_[i] != step) return false;
    step *= sizes_[i];
  }
  return true;
}
Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }
Tensor Tensor::clone() const {
  Tensor out = empty(sizes_, type_);
  out.copy_(*this);
  return out;
}
Tensor Tensor::view(std::vector<int64_t> sizes) const {
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1) open = static_cast<int64_t>(i);
    else known *= sizes[i];
  }
  if (open >= 0) sizes[static_cast<size_t>(open)] = known ? numel() / known : 0;
  if (!is_contiguous()) lacks("views of strided tensors");
  return Tensor(data_, sizes, dense(sizes), type_);
}
Tensor Tensor::squeeze(int64_t d) const {
  Tensor out = *this;
  size_t i = wrap(d);
  if (sizes_[i] != 1) return out;
  out.sizes_.erase(out.sizes_.begin() + static_cast<long>(i));
  out.strides_.erase(out.strides_.begin() + static_cast<long>(i));
  return out;
}
Tensor Tensor::unsqueeze(int64_t d) const {
  Tensor out = *this;
  size_t i = static_cast<size_t>(d < 0 ? d + dim() + 1 : d);
  out.sizes_.insert(out.sizes_.begin() + static_cast<long>(i), 1);
  out.strides_.insert(out.strides_.begin() + static_cast<long>(i), 1);
  return out;
}
Tensor Tensor::transpose(int64_t a, int64_t b) const {
  Tensor out = *this;
  std::swap(out.sizes_[wrap(a)], out.sizes_[wrap(b)]);
  std::swap(out.strides_[wrap(a)], out.strides_[wrap(b)]);
  return out;
}
Tensor Tensor::narrow(int64_t d, int64_t start, int64_t length) const {
  Tensor out = *this;
  size_t i = wrap(d);
  out.data_ += static_cast<size_t>(start * strides_[i]) * element_size();
  out.sizes_[i] = length;
  return out;
}
Tensor& Tensor::zero_() {
  if (!is_contiguous()) lacks("zero_() of strided tensors");
  std::memset(data_, 0, nbytes());
  return *this;
}
Tensor& Tensor::copy_(const Tensor& from) {
  if (from.sizes_ != sizes_) lacks("copy_() with broadcasting");
  if (from.type_ != type_) lacks("copy_() between scalar types");
  size_t each = element_size();
  std::vector<int64_t> at(sizes_.size(), 0);
  for (int64_t n = numel(); n > 0; --n) {
    int64_t to_offset = 0, from_offset = 0;
    for (size_t i = 0; i < at.size(); ++i) to_offset += at[i] * strides_[i], from_offset += at[i] * from.strides_[i];
    std::memcpy(data_ + to_offset * static_cast<int64_t>(each), from.data_ + from_offset * static_cast<int64_t>(each), each);
    for (size_t i = at.size(); i-- > 0;) {
      if (++at[i] < sizes_[i]) break;
      at[i] = 0;
    }
  }
  return *this;
}

Tensor empty(const std::vector<int64_t>& sizes, ScalarType type) {
  Tensor out(nullptr, sizes, dense(sizes), type);
  return Tensor(allocate(out.nbytes()), sizes, dense(sizes), type);
}
Tensor zeros(const std::vector<int64_t>& sizes, ScalarType type) {
  Tensor out = empty(sizes, type);
  out.zero_();
  return out;
}

}  // namespace emu
