// What the worker, the generated entry and the runtime's own files share.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "engine.hpp"

// Alignment (bytes) that the text asks for its dynamic shared memory; defined by the generated entry.
extern const size_t emu_dynamic_align;

extern "C" {
// One argument of the op, as the worker hands it over. kind: 0 none, 1 tensor, 2 float, 3 integer
// (also bool), 4 string, 5 list of integers (`sizes`, `dims`). `dtype` is a name as torch spells it.
struct emu_argument {
  int32_t kind, dims;
  void* data;
  const int64_t *sizes, *strides;
  const char* dtype;
  double real;
  int64_t integer;
  const char* text;
};
// The op itself. 0: it ran; 1: it refused (the report says why); 2: a CUDA error is pending.
int emu_entry(const emu_argument* arguments, int count);
}

namespace emu {

cudaDeviceProp& device();
void note(const char* format, ...) __attribute__((format(printf, 1, 2)));  // appended to the report
void set_order(bool backwards);
// Run only the blocks of the last `count` of `rows` rows of each launch (0: all blocks).
void set_tail(uint64_t rows, uint64_t count);
bool tail_unreached();  // a launch had fewer blocks than rows, so that no block belongs to a row
void opt_in(const void* kernel, size_t dynamic_bytes);
bool in_kernel();
// Names a range of addresses, so that a fault there can be told; `data` bytes of it may be touched.
void add_region(const char* name, const void* begin, size_t bytes, size_t data, bool read_only = false);

}  // namespace emu
