// Barriers, warp shuffles, votes, matches and reductions.
#pragma once
#include "engine.hpp"

inline void __syncthreads() { emu::barrier(0, 0, false); }
inline int __syncthreads_count(int predicate) { return static_cast<int>(emu::barrier(0, 0, predicate != 0)); }
inline int __syncthreads_or(int predicate) { return emu::barrier(0, 0, predicate != 0) != 0; }
inline int __syncthreads_and(int predicate) { return emu::barrier(0, 0, predicate == 0) == 0; }
inline void __barrier_sync(unsigned id) { emu::barrier(id, 0, false); }
inline void __barrier_sync_count(unsigned id, unsigned count) { emu::barrier(id, count, false); }
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu) {
  emu::collective(emu::Collective::sync, mask, nullptr, nullptr, 0, 0);
}
inline unsigned __activemask() { return emu::collective(emu::Collective::active, 0, nullptr, nullptr, 0, 0); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) {}
[[noreturn]] inline void __trap() { emu::crash("the kernel trapped"); }

namespace emu {

// Source lanes as the shfl instruction computes them (PTX ISA, "shfl.sync").
inline unsigned lowest(int width) { return lane() & ~(static_cast<unsigned>(width) - 1); }
inline unsigned highest(int width) { return lowest(width) + static_cast<unsigned>(width) - 1; }

template <class T>
T shuffle(unsigned mask, T value, unsigned source) {
  static_assert(std::is_trivially_copyable_v<T>);
  T result;
  collective(Collective::shuffle, mask, &value, &result, sizeof(T), source);
  return result;
}

template <class T>
struct Gathered {
  uint32_t lanes;
  T values[32];
};
template <class T>
Gathered<T> gather(unsigned mask, T value) {
  Gathered<T> all;
  all.lanes = collective(Collective::gather, mask, &value, all.values, sizeof(T), 0);
  return all;
}
template <class T, class F>
T fold(unsigned mask, T value, F f) {
  Gathered<T> all = gather(mask, value);
  bool first = true;
  T result = value;
  for (unsigned i = 0; i < 32; ++i) {
    if (!(all.lanes >> i & 1)) continue;
    result = first ? all.values[i] : f(result, all.values[i]);
    first = false;
  }
  return result;
}

}  // namespace emu

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  return emu::shuffle(mask, value, emu::lowest(width) | (static_cast<unsigned>(source) & (width - 1)));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
  unsigned source = emu::lane() ^ static_cast<unsigned>(lane_mask);
  return emu::shuffle(mask, value, source <= emu::highest(width) ? source : emu::lane());
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  unsigned source = emu::lane() + delta;
  return emu::shuffle(mask, value, source <= emu::highest(width) ? source : emu::lane());
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  int source = static_cast<int>(emu::lane()) - static_cast<int>(delta);
  return emu::shuffle(mask, value, source >= static_cast<int>(emu::lowest(width)) ? source : emu::lane());
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  auto all = emu::gather(mask, predicate != 0);
  unsigned bits = 0;
  for (unsigned i = 0; i < 32; ++i) bits |= (all.lanes >> i & 1 && all.values[i] ? 1u : 0u) << i;
  return bits;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }
template <class T>
unsigned __match_any_sync(unsigned mask, T value) {
  auto all = emu::gather(mask, value);
  unsigned bits = 0;
  for (unsigned i = 0; i < 32; ++i)
    bits |= (all.lanes >> i & 1 && !std::memcmp(&all.values[i], &value, sizeof(T)) ? 1u : 0u) << i;
  return bits;
}
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int* same) {
  auto all = emu::gather(mask, value);
  bool equal = true;
  for (unsigned i = 0; i < 32; ++i)
    equal &= !(all.lanes >> i & 1) || !std::memcmp(&all.values[i], &value, sizeof(T));
  *same = equal;
  return equal ? all.lanes : 0;
}
template <class T>
T __reduce_add_sync(unsigned mask, T value) {
  return emu::fold(mask, value, [](T a, T b) { return static_cast<T>(a + b); });
}
template <class T>
T __reduce_min_sync(unsigned mask, T value) {
  return emu::fold(mask, value, [](T a, T b) { return b < a ? b : a; });
}
template <class T>
T __reduce_max_sync(unsigned mask, T value) {
  return emu::fold(mask, value, [](T a, T b) { return a < b ? b : a; });
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value) {
  return emu::fold(mask, value, [](unsigned a, unsigned b) { return a & b; });
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value) {
  return emu::fold(mask, value, [](unsigned a, unsigned b) { return a | b; });
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value) {
  return emu::fold(mask, value, [](unsigned a, unsigned b) { return a ^ b; });
}
