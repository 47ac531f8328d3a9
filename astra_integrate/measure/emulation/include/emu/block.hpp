// Stand-ins for the block- and warp-wide primitives of cub that kernels use. Values combine in cub's
// order (a tree inside each warp, then warp by warp), since rounding depends on it.
#pragma once
#include "engine.hpp"
#include "memory.hpp"
#include "warp.hpp"

#define CUB_VERSION 300000

namespace cuda {
template <class T = void>
struct maximum {
  template <class A, class B>
  constexpr auto operator()(const A& a, const B& b) const { return a < b ? b : a; }
};
template <class T = void>
struct minimum {
  template <class A, class B>
  constexpr auto operator()(const A& a, const B& b) const { return b < a ? b : a; }
};
namespace std {
using ::std::plus;
using ::std::multiplies;
using ::std::numeric_limits;
}  // namespace std
}  // namespace cuda

namespace cub {

struct Sum {
  template <class A, class B>
  constexpr auto operator()(const A& a, const B& b) const { return a + b; }
};
struct Max {
  template <class A, class B>
  constexpr auto operator()(const A& a, const B& b) const { return a < b ? b : a; }
};
struct Min {
  template <class A, class B>
  constexpr auto operator()(const A& a, const B& b) const { return b < a ? b : a; }
};
enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS };
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

namespace detail {
// Undefined on the device, so no value that could pass for a result.
template <class T>
T undefined() {
  T value;
  std::memset(static_cast<void*>(&value), 0xFF, sizeof value);
  return value;
}
template <class T, class Op>
T tree(T* values, unsigned count, Op op) {
  for (unsigned step = 1; step < 32; step *= 2)
    for (unsigned i = 0; i + step < count; i += 2 * step) values[i] = op(values[i], values[i + step]);
  return values[0];
}
}  // namespace detail

template <class T, int X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1, int = 0>
class BlockReduce {
 public:
  struct TempStorage {
    T values[X * Y * Z];
  };
  explicit BlockReduce(TempStorage& storage) : storage_(storage) {}
  template <class Op>
  T Reduce(T value, Op op, int valid = X * Y * Z) {
    unsigned rank = emu::thread_rank(), threads = X * Y * Z;
    if (emu::thread_count() > threads) emu::crash("a block of %u threads reduces with cub for %u", emu::thread_count(), threads);
    if (emu::thread_count() < threads && valid > static_cast<int>(emu::thread_count()))
      emu::crash("cub reduces %d values of a block of %u threads", valid, emu::thread_count());
    storage_.values[rank] = value;
    __syncthreads();
    if (rank != 0) return detail::undefined<T>();
    unsigned count = static_cast<unsigned>(valid);
    T total = detail::tree(storage_.values, count < 32 ? count : 32, op);
    for (unsigned first = 32; first < count; first += 32)
      total = op(total, detail::tree(storage_.values + first, count - first < 32 ? count - first : 32, op));
    return total;
  }
  T Sum(T value, int valid = X * Y * Z) { return Reduce(value, cub::Sum{}, valid); }
  template <int N, class Op>
  T Reduce(T (&values)[N], Op op) {
    T own = values[0];
    for (int i = 1; i < N; ++i) own = op(own, values[i]);
    return Reduce(own, op);
  }
  template <int N>
  T Sum(T (&values)[N]) { return Reduce(values, cub::Sum{}); }

 private:
  TempStorage& storage_;
};

template <class T, int X, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int = 0>
class BlockScan {
 public:
  struct TempStorage {
    T values[X * Y * Z];
  };
  explicit BlockScan(TempStorage& storage) : storage_(storage) {}
  template <class Op>
  void InclusiveScan(T value, T& out, Op op, T& aggregate) {
    storage_.values[emu::thread_rank()] = value;
    __syncthreads();
    T running = storage_.values[0], mine = running;
    for (unsigned i = 1; i < emu::thread_count(); ++i) {
      running = op(running, storage_.values[i]);
      if (i == emu::thread_rank()) mine = running;
    }
    out = mine;
    aggregate = running;
    __syncthreads();
  }
  template <class Op>
  void InclusiveScan(T value, T& out, Op op) {
    T aggregate;
    InclusiveScan(value, out, op, aggregate);
  }
  void InclusiveSum(T value, T& out) { InclusiveScan(value, out, cub::Sum{}); }
  void InclusiveSum(T value, T& out, T& aggregate) { InclusiveScan(value, out, cub::Sum{}, aggregate); }
  void ExclusiveSum(T value, T& out, T& aggregate) {
    T inclusive;
    InclusiveScan(value, inclusive, cub::Sum{}, aggregate);
    out = inclusive - value;
  }
  void ExclusiveSum(T value, T& out) {
    T aggregate;
    ExclusiveSum(value, out, aggregate);
  }
  template <int N>
  void ExclusiveSum(T (&values)[N], T (&out)[N], T& aggregate) {
    T own{};
    for (int i = 0; i < N; ++i) own = own + values[i];
    T before;
    ExclusiveSum(own, before, aggregate);
    for (int i = 0; i < N; ++i) {
      T value = values[i];
      out[i] = before;
      before = before + value;
    }
  }
  template <int N>
  void ExclusiveSum(T (&values)[N], T (&out)[N]) {
    T aggregate;
    ExclusiveSum(values, out, aggregate);
  }

 private:
  TempStorage& storage_;
};

template <class T, int Width = 32, int = 0>
class WarpReduce {
 public:
  struct TempStorage {
    T values[1];
  };
  explicit WarpReduce(TempStorage&) {}
  template <class Op>
  T Reduce(T value, Op op, int valid = Width) {
    int rank = static_cast<int>(emu::lane()) % Width;
    for (int step = 1; step < Width; step *= 2) {
      T other = __shfl_down_sync(0xFFFFFFFFu, value, step, Width);
      if (rank + step < valid) value = op(value, other);
    }
    return value;
  }
  T Sum(T value, int valid = Width) { return Reduce(value, cub::Sum{}, valid); }
};

}  // namespace cub
