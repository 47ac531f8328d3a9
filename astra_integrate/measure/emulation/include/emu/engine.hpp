// The CUDA execution model on one CPU core: what device code needs to see of it.
//
// One fiber per CUDA thread, one block at a time. A thread runs until it waits (barrier, warp
// collective) or returns; nothing runs beside it, so atomics are plain operations. The order in
// which threads and blocks start is forward or reverse: a kernel that lacks a barrier gives
// different results in the two. runtime.cpp holds the other half.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

// Real variables rather than macros: the scheduler writes them whenever it resumes a thread.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

namespace emu {

enum class Collective : int { shuffle, gather, active, sync };

// Ends the run: the text becomes the reason of the verdict "crashes".
[[noreturn]] void crash(const char* format, ...) __attribute__((format(printf, 1, 2)));
// Ends the run: the kernel is not at fault, the emulation lacks something.
[[noreturn]] void lacks(const char* what);

unsigned lane();          // of the running thread in its warp
unsigned thread_rank();   // linear index in the block
unsigned thread_count();  // threads of the block
uint32_t warp_alive();    // lanes of the warp that exist and have not returned

// Waits until every living lane of `mask` has come with the same kind; see runtime.cpp.
// shuffle: `out` gets the `size` bytes at `in` of lane `source` (0xFF bytes from a lane that takes no part).
// gather: `out` gets 32 slots of `size` bytes; the lanes that took part are returned.
// active: no mask; meets the lanes that wait for it once no lane of the warp can run on.
uint32_t collective(Collective kind, uint32_t mask, const void* in, void* out, unsigned size, unsigned source);

// Waits at barrier `id` for `count` threads (0: all threads of the block that have not returned).
// Returns how many of them came with a true `predicate`.
unsigned barrier(unsigned id, unsigned count, bool predicate);

void* dynamic_shared();     // start of the block's dynamic shared memory
unsigned dynamic_shared_bytes();
// Shared memory as PTX addresses it: 32 bits, and not a pointer.
uint32_t shared_address(const void* pointer);
void* shared_pointer(uint32_t address);

struct Launch {
  dim3 grid, block;
  size_t shared = 0;
  cudaStream_t stream = nullptr;
  const void* kernel = nullptr;
};
// Runs all blocks, or records the error that CUDA would (bad geometry, too much shared memory).
cudaError_t run(const Launch& launch, void (*body)(const void*), const void* context);

void* allocate(size_t bytes);  // device memory, poisoned, guard page behind; lives until the process ends
void set_error(cudaError_t error);

template <class F>
cudaError_t run_body(const Launch& launch, const F& body) {
  return run(launch, [](const void* f) { (*static_cast<const F*>(f))(); }, &body);
}

template <class... P>
cudaError_t launch_kernel(Launch launch, void (*kernel)(P...), std::tuple<P...> arguments) {
  launch.kernel = reinterpret_cast<const void*>(kernel);
  // Every thread gets its own copy of the parameters, as on the device.
  return run_body(launch, [&] { std::apply(kernel, std::tuple<P...>(arguments)); });
}

// `kernel<<<g, b, s, t>>>(a...)` is rewritten to `kernel ->* emu::config(g, b, s, t)(a...)`:
// ->* binds weaker than a call, so the arguments are packed first and the operator launches.
template <class... A>
struct Packed {
  Launch launch;
  std::tuple<A...> arguments;
};
struct Config {
  Launch launch;
  template <class... A>
  Packed<A&&...> operator()(A&&... a) const { return {launch, std::tuple<A&&...>(std::forward<A>(a)...)}; }
};
inline Config config(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = nullptr) {
  return {{grid, block, shared, stream}};
}
template <class... P, class... A>
void operator->*(void (*kernel)(P...), Packed<A...>&& packed) {
  launch_kernel<P...>(packed.launch, kernel, std::tuple<P...>(std::move(packed.arguments)));
}

}  // namespace emu
