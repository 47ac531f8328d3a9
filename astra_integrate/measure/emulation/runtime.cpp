// Scheduler of the emulation: fibers, barriers, warp collectives, launches, shared memory.
#include "emu/engine.hpp"
#include "emu/host.hpp"

#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

extern "C" void emu_switch(void** save, void* to);

namespace emu {
namespace {

constexpr size_t stack_bytes = 128 << 10;
constexpr size_t page = 4096;
constexpr size_t stack_guard = 512 << 10;  // as much as a thread's local memory may be on the device
constexpr size_t poison_each_block = 256 << 10;  // beyond that, shared statics are poisoned once a launch

enum class State : uint8_t { fresh, ready, barrier, warp, done };

struct Fiber {
  void* stack_pointer = nullptr;
  int stack = -1;
  State state = State::fresh;
  uint3 index{};
  // What it waits for.
  Collective kind{};
  uint32_t mask = 0, taken = 0;
  const void* in = nullptr;
  void* out = nullptr;
  unsigned size = 0, source = 0;
  unsigned barrier_id = 0, barrier_count = 0, votes = 0;
  bool predicate = false;
};

std::vector<Fiber> fibers;
std::vector<char*> stacks;
std::vector<int> free_stacks;
Fiber* current = nullptr;
unsigned current_rank = 0;
void* scheduler_pointer = nullptr;
void (*body)(const void*) = nullptr;
const void* body_context = nullptr;
bool reverse = false;
bool running = false;
uint64_t tail_total = 0, tail_count = 0;
bool tail_missed = false;
char* dynamic_region = nullptr;
char* dynamic_base = nullptr;
size_t dynamic_bytes = 0;
std::unordered_map<const void*, size_t> opted_in;
thread_local char shared_anchor;  // makes the module's TLS block exist

int take_stack() {
  if (!free_stacks.empty()) {
    int stack = free_stacks.back();
    free_stacks.pop_back();
    return stack;
  }
  char* memory = static_cast<char*>(mmap(nullptr, stack_bytes + stack_guard, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (memory == MAP_FAILED) crash("no memory for the stack of a thread");
  mprotect(memory, stack_guard, PROT_NONE);
  add_region("a thread's stack (a local array too large for the emulation?)", memory, stack_guard, 0);
  stacks.push_back(memory + stack_guard);
  return static_cast<int>(stacks.size()) - 1;
}

void leave(State state) {
  current->state = state;
  emu_switch(&current->stack_pointer, scheduler_pointer);
}

[[noreturn]] void fiber_main() {
  body(body_context);
  leave(State::done);
  __builtin_unreachable();
}

void prepare(Fiber& fiber) {
  fiber.stack = take_stack();
  // Stacks begin at different offsets in their pages, or they would all share a few cache sets.
  size_t colour = (static_cast<size_t>(fiber.stack) * 5 % 32) * 128;
  auto top = reinterpret_cast<uintptr_t>(stacks[fiber.stack] + stack_bytes - colour) & ~uintptr_t{15};
  void** words = reinterpret_cast<void**>(top);
  *--words = nullptr;
  *--words = reinterpret_cast<void*>(&fiber_main);
  for (int i = 0; i < 6; ++i) *--words = nullptr;
  fiber.stack_pointer = words;
}

void resume(unsigned rank) {
  Fiber& fiber = fibers[rank];
  if (fiber.state == State::fresh) prepare(fiber);
  fiber.state = State::ready;
  current = &fiber;
  current_rank = rank;
  threadIdx = fiber.index;
  emu_switch(&scheduler_pointer, fiber.stack_pointer);
  if (fiber.state == State::done) {
    free_stacks.push_back(fiber.stack);  // the next thread reuses the stack that is hot in the cache
    fiber.stack = -1;
  }
}

bool runnable(const Fiber& fiber) { return fiber.state == State::fresh || fiber.state == State::ready; }

void deliver(unsigned first, uint32_t lanes) {
  for (unsigned l = 0; l < 32; ++l) {
    if (!(lanes >> l & 1)) continue;
    Fiber& fiber = fibers[first + l];
    fiber.taken = lanes;
    if (fiber.kind == Collective::shuffle) {
      if (lanes >> fiber.source & 1)
        std::memcpy(fiber.out, fibers[first + fiber.source].in, fiber.size);
      else
        std::memset(fiber.out, 0xFF, fiber.size);  // undefined on the device
    } else if (fiber.kind == Collective::gather) {
      for (unsigned other = 0; other < 32; ++other)
        if (lanes >> other & 1)
          std::memcpy(static_cast<char*>(fiber.out) + other * fiber.size, fibers[first + other].in, fiber.size);
    }
  }
  for (unsigned l = 0; l < 32; ++l)
    if (lanes >> l & 1) fibers[first + l].state = State::ready;
}

// Completes every collective of the warp whose lanes are all there. True when one was.
bool settle_warp(unsigned first, unsigned end) {
  uint32_t alive = 0, waiting = 0, active = 0;
  for (unsigned i = first; i < end; ++i) {
    uint32_t bit = 1u << (i - first);
    if (fibers[i].state != State::done) alive |= bit;
    if (fibers[i].state != State::warp) continue;
    (fibers[i].kind == Collective::active ? active : waiting) |= bit;
  }
  bool settled = false;
  while (waiting) {
    const Fiber& leader = fibers[first + __builtin_ctz(waiting)];
    uint32_t wanted = leader.mask & alive, group = 0;
    for (uint32_t rest = waiting; rest; rest &= rest - 1) {
      const Fiber& fiber = fibers[first + __builtin_ctz(rest)];
      if (fiber.mask == leader.mask && fiber.kind == leader.kind && fiber.size == leader.size)
        group |= 1u << __builtin_ctz(rest);
    }
    if (group == wanted) {
      deliver(first, group);
      settled = true;
    }
    waiting &= ~group;
  }
  if (!settled && active) {
    deliver(first, active);
    settled = true;
  }
  return settled;
}

bool settle_barriers(unsigned count) {
  unsigned alive = 0;
  for (unsigned i = 0; i < count; ++i) alive += fibers[i].state != State::done;
  bool settled = false;
  for (unsigned i = 0; i < count; ++i) {
    if (fibers[i].state != State::barrier) continue;
    unsigned id = fibers[i].barrier_id, wanted = fibers[i].barrier_count, came = 0, votes = 0;
    for (unsigned j = i; j < count; ++j) {
      if (fibers[j].state != State::barrier || fibers[j].barrier_id != id) continue;
      came += 1;
      votes += fibers[j].predicate;
      wanted = std::max(wanted, fibers[j].barrier_count);
    }
    if (came < (wanted ? wanted : alive)) continue;
    for (unsigned j = i; j < count; ++j) {
      if (fibers[j].state != State::barrier || fibers[j].barrier_id != id) continue;
      fibers[j].votes = votes;
      fibers[j].state = State::ready;
    }
    settled = true;
  }
  return settled;
}

[[noreturn]] void deadlock(unsigned count) {
  unsigned at_barrier = 0, at_warp = 0, returned = 0, first_barrier = count, first_warp = count;
  for (unsigned i = 0; i < count; ++i) {
    State state = fibers[i].state;
    returned += state == State::done;
    if (state == State::barrier && at_barrier++ == 0) first_barrier = i;
    if (state == State::warp && at_warp++ == 0) first_warp = i;
  }
  if (at_warp)
    crash("divergent barrier: %u threads wait at a warp operation (first thread %u, mask 0x%08x), %u at a block "
          "barrier, %u have returned",
          at_warp, first_warp, fibers[first_warp].mask, at_barrier, returned);
  crash("divergent barrier: %u threads wait at barriers that the others never reach (first thread %u, barrier %u), "
        "%u have returned",
        at_barrier, first_barrier, fibers[first_barrier].barrier_id, returned);
}

struct Block {
  char* data = nullptr;
  size_t size = 0;
};
// The module's thread-local block of this (only) OS thread: it holds all `__shared__` variables.
Block shared_block() {
  volatile char* touch = &shared_anchor;
  *touch = 0;
  static Block block;
  if (!block.data) {
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void*) {
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            auto& header = info->dlpi_phdr[i];
            auto* data = static_cast<char*>(info->dlpi_tls_data);
            if (header.p_type == PT_TLS && data && &shared_anchor >= data && &shared_anchor < data + header.p_memsz)
              block = {data, header.p_memsz};
          }
          return 0;
        },
        nullptr);
  }
  return block;
}

void run_block(unsigned count) {
  for (unsigned i = 0; i < count; ++i) fibers[i].state = State::fresh;
  unsigned warps = (count + 31) / 32;
  for (;;) {
    bool progress = false, living = false;
    for (unsigned w = 0; w < warps; ++w) {
      unsigned first = (reverse ? warps - 1 - w : w) * 32, end = std::min(count, first + 32);
      do {
        for (unsigned i = first; i < end; ++i) {
          unsigned rank = reverse ? end - 1 - (i - first) : i;
          if (!runnable(fibers[rank])) continue;
          resume(rank);
          progress = true;
        }
      } while (settle_warp(first, end));
      for (unsigned i = first; i < end; ++i) living |= fibers[i].state != State::done;
    }
    if (!living) return;
    if (!settle_barriers(count) && !progress) deadlock(count);
  }
}

const char* geometry_fault(const Launch& launch) {
  const dim3 &g = launch.grid, &b = launch.block;
  if (!g.x || !g.y || !g.z) return "grid with no blocks";
  if (!b.x || !b.y || !b.z) return "block with no threads";
  if (b.z > 64 || uint64_t{b.x} * b.y * b.z > 1024) return "more than 1024 threads a block";
  if (g.x > 0x7FFFFFFFu || g.y > 65535 || g.z > 65535) return "grid too large";
  return nullptr;
}

}  // namespace

unsigned lane() { return current_rank & 31; }
unsigned thread_rank() { return current_rank; }
unsigned thread_count() { return static_cast<unsigned>(blockDim.x * blockDim.y * blockDim.z); }
uint32_t warp_alive() {
  uint32_t alive = 0;
  unsigned first = current_rank & ~31u, end = std::min(thread_count(), first + 32);
  for (unsigned i = first; i < end; ++i) alive |= uint32_t{fibers[i].state != State::done} << (i - first);
  return alive;
}
bool in_kernel() { return running; }

uint32_t collective(Collective kind, uint32_t mask, const void* in, void* out, unsigned size, unsigned source) {
  if (!running) crash("a warp operation outside a kernel");
  if (kind != Collective::active && !(mask >> lane() & 1))
    crash("a warp operation whose mask 0x%08x leaves out the calling lane %u", mask, lane());
  Fiber& me = *current;
  me.kind = kind;
  me.mask = mask;
  me.in = in;
  me.out = out;
  me.size = size;
  me.source = source;
  leave(State::warp);
  return me.taken;
}

unsigned barrier(unsigned id, unsigned count, bool predicate) {
  if (!running) crash("a barrier outside a kernel");
  Fiber& me = *current;
  me.barrier_id = id;
  me.barrier_count = count;
  me.predicate = predicate;
  leave(State::barrier);
  return me.votes;
}

void* dynamic_shared() { return dynamic_base; }
unsigned dynamic_shared_bytes() { return static_cast<unsigned>(dynamic_bytes); }
namespace {
constexpr uint32_t dynamic_window = 1u << 30, static_window = 2u << 30;
}
uint32_t shared_address(const void* pointer) {
  auto* p = static_cast<const char*>(pointer);
  if (p >= dynamic_base && p <= dynamic_base + dynamic_bytes) return dynamic_window + static_cast<uint32_t>(p - dynamic_base);
  Block block = shared_block();
  if (p >= block.data && p < block.data + block.size) return static_window + static_cast<uint32_t>(p - block.data);
  crash("an address is taken for shared memory that isn't there");
}
void* shared_pointer(uint32_t address) {
  if (address >= static_window) return shared_block().data + (address - static_window);
  if (address >= dynamic_window) return dynamic_base + (address - dynamic_window);
  crash("an access through the shared address %#x, where nothing is", address);
}
void set_order(bool backwards) { reverse = backwards; }
void set_tail(uint64_t rows, uint64_t count) { tail_total = rows, tail_count = count; }
bool tail_unreached() { return tail_missed; }
void opt_in(const void* kernel, size_t bytes) { opted_in[kernel] = bytes; }

namespace {
void place_dynamic(size_t bytes) {
  size_t room = (static_cast<size_t>(device().sharedMemPerBlockOptin) + 2 * page - 1) & ~(page - 1);
  if (!dynamic_region) {
    dynamic_region = static_cast<char*>(mmap(nullptr, room + page, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(dynamic_region + room, page, PROT_NONE);
    add_region("dynamic shared memory", dynamic_region + room, page, 0);
  }
  // It ends at the guard page; what alignment leaves over is poison.
  dynamic_bytes = bytes;
  auto end = reinterpret_cast<uintptr_t>(dynamic_region + room);
  dynamic_base = reinterpret_cast<char*>((end - bytes) & ~uintptr_t{emu_dynamic_align - 1});
}
}  // namespace

cudaError_t run(const Launch& launch, void (*kernel_body)(const void*), const void* context) {
  if (running) lacks("launches from device code");
  if (const char* fault = geometry_fault(launch)) {
    note("launch with an invalid configuration: %s (grid %u,%u,%u block %u,%u,%u)", fault, launch.grid.x, launch.grid.y,
         launch.grid.z, launch.block.x, launch.block.y, launch.block.z);
    set_error(cudaErrorInvalidConfiguration);
    return cudaErrorInvalidConfiguration;
  }
  auto opted = opted_in.find(launch.kernel);
  size_t allowed = opted == opted_in.end() ? device().sharedMemPerBlock : opted->second;
  if (launch.shared > allowed) {
    note("launch with %zu bytes of dynamic shared memory where %zu are allowed", launch.shared, allowed);
    set_error(cudaErrorInvalidValue);
    return cudaErrorInvalidValue;
  }
  gridDim = launch.grid;
  blockDim = launch.block;
  unsigned count = blockDim.x * blockDim.y * blockDim.z;
  if (fibers.size() < count) fibers.resize(count);
  for (unsigned i = 0; i < count; ++i)
    fibers[i].index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y)};
  place_dynamic(launch.shared);
  body = kernel_body;
  body_context = context;
  Block shared = shared_block();
  uint64_t blocks = uint64_t{gridDim.x} * gridDim.y * gridDim.z;
  uint64_t skipped = 0;
  if (tail_count) {
    if (blocks < tail_total) tail_missed = true;
    else skipped = blocks - std::min(blocks, tail_count * ((blocks + tail_total - 1) / tail_total));
  }
  running = true;
  for (uint64_t n = tail_missed ? blocks : skipped; n < blocks; ++n) {
    uint64_t b = reverse ? blocks - 1 - (n - skipped) : n;
    blockIdx = {static_cast<unsigned>(b % gridDim.x), static_cast<unsigned>(b / gridDim.x % gridDim.y),
                static_cast<unsigned>(b / (uint64_t{gridDim.x} * gridDim.y))};
    if (shared.size <= poison_each_block || n == skipped) std::memset(shared.data, 0xFF, shared.size);
    if (dynamic_bytes) std::memset(dynamic_base, 0xFF, dynamic_bytes);
    run_block(count);
  }
  running = false;
  return cudaSuccess;
}

}  // namespace emu
