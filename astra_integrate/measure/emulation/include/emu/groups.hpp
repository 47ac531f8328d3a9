// Cooperative groups: thread block, tiles, coalesced threads. Grids that synchronise are not emulated.
#pragma once
#include "engine.hpp"
#include "warp.hpp"

namespace cooperative_groups {

struct thread_block {
  static void sync() { __syncthreads(); }
  static unsigned thread_rank() { return emu::thread_rank(); }
  static unsigned size() { return emu::thread_count(); }
  static unsigned num_threads() { return emu::thread_count(); }
  static dim3 group_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
  static dim3 thread_index() { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
  static dim3 dim_threads() { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }

struct grid_group {
  static unsigned long long thread_rank() {
    return (blockIdx.x + static_cast<unsigned long long>(gridDim.x) * (blockIdx.y + gridDim.y * blockIdx.z)) *
               emu::thread_count() +
           emu::thread_rank();
  }
  static unsigned long long size() {
    return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z * emu::thread_count();
  }
  [[noreturn]] static void sync() { emu::lacks("grid-wide synchronisation"); }
};
inline grid_group this_grid() { return {}; }

template <unsigned Size, class Parent = void>
struct thread_block_tile {
  static_assert(Size <= 32 && (Size & (Size - 1)) == 0, "tiles beyond one warp are not emulated");
  static unsigned thread_rank() { return emu::lane() % Size; }
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  static unsigned meta_group_rank() { return emu::thread_rank() / Size; }
  static unsigned meta_group_size() { return (emu::thread_count() + Size - 1) / Size; }
  static unsigned mask() { return Size == 32 ? 0xFFFFFFFFu : ((1u << (Size % 32)) - 1) << (emu::lane() & ~(Size - 1)); }
  static void sync() { __syncwarp(mask()); }
  template <class T>
  static T shfl(T v, int source) { return __shfl_sync(mask(), v, source, Size); }
  template <class T>
  static T shfl_xor(T v, unsigned m) { return __shfl_xor_sync(mask(), v, static_cast<int>(m), Size); }
  template <class T>
  static T shfl_down(T v, unsigned d) { return __shfl_down_sync(mask(), v, d, Size); }
  template <class T>
  static T shfl_up(T v, unsigned d) { return __shfl_up_sync(mask(), v, d, Size); }
  static unsigned ballot(int p) {
    unsigned bits = __ballot_sync(mask(), p) >> (emu::lane() & ~(Size - 1));
    return Size == 32 ? bits : bits & ((1u << (Size % 32)) - 1);
  }
  static int any(int p) { return __any_sync(mask(), p); }
  static int all(int p) { return __all_sync(mask(), p); }
};
template <unsigned Size, class Parent>
thread_block_tile<Size, Parent> tiled_partition(const Parent&) { return {}; }

struct coalesced_group {
  unsigned lanes;
  unsigned thread_rank() const { return __popc(lanes & ((1u << emu::lane()) - 1)); }
  unsigned size() const { return __popc(lanes); }
  unsigned num_threads() const { return size(); }
  void sync() const { __syncwarp(lanes); }
  unsigned nth(unsigned n) const {
    unsigned rest = lanes;
    while (n--) rest &= rest - 1;
    return static_cast<unsigned>(__ffs(static_cast<int>(rest))) - 1;
  }
  template <class T>
  T shfl(T v, unsigned source) const { return __shfl_sync(lanes, v, static_cast<int>(nth(source))); }
  unsigned ballot(int p) const { return __ballot_sync(lanes, p); }
};
inline coalesced_group coalesced_threads() { return {__activemask()}; }

template <class T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <unsigned Size, class P, class T, class Op>
T reduce(const thread_block_tile<Size, P>& tile, T value, Op op) {
  for (unsigned step = Size / 2; step; step /= 2) value = op(value, tile.shfl_xor(value, step));
  return value;
}

}  // namespace cooperative_groups
