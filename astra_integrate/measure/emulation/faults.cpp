// Why a run ended: signals, guard pages, sanitizer findings and refusals, as text for the worker.
#include <dlfcn.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "emu/host.hpp"

namespace emu {
namespace {

constexpr int exit_crash = 70, exit_lacks = 71, exit_time = 72;
constexpr size_t report_bytes = 4096;
char fallback_report[report_bytes];
char* report = fallback_report;
size_t reported = 0;

struct Region {
  const char* name;
  uintptr_t begin, end, data_end;
  bool read_only;
};
Region regions[2048];
size_t region_count = 0;
char signal_stack[64 << 10];

void say(const char* format, va_list list) {
  if (reported && reported + 2 < report_bytes) {
    report[reported++] = ';';
    report[reported++] = ' ';
  }
  int n = vsnprintf(report + reported, report_bytes - reported, format, list);
  if (n > 0) reported = reported + static_cast<size_t>(n) < report_bytes ? reported + n : report_bytes - 1;
}

[[noreturn]] void end(int code) { _exit(code); }

const char* where() {
  static char text[128];
  if (!in_kernel()) return "the host function";
  snprintf(text, sizeof text, "thread (%u,%u,%u) of block (%u,%u,%u)", threadIdx.x, threadIdx.y, threadIdx.z, blockIdx.x,
           blockIdx.y, blockIdx.z);
  return text;
}

void on_fault(int, siginfo_t* info, void* context) {
  auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  bool write = true;
#if defined(__x86_64__)
  write = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2;
#endif
  const char* verb = write ? "writes" : "reads";
  for (size_t i = region_count; i-- > 0;) {
    const Region& r = regions[i];
    if (address < r.begin || address >= r.end) continue;
    if (r.data_end == r.begin)
      crash("%s runs into %s", where(), r.name);
    else if (r.read_only && write && address < r.data_end)
      crash("%s writes to '%s', which the op may only read", where(), r.name);
  }
  // A guard page: the tensor that lies nearest tells which access went wrong.
  const Region* best = nullptr;
  uintptr_t distance = UINTPTR_MAX;
  for (size_t i = 0; i < region_count; ++i) {
    const Region& r = regions[i];
    if (r.data_end == r.begin) continue;
    uintptr_t d = address >= r.data_end ? address - r.data_end : address < r.begin ? r.begin - address : 0;
    if (d < distance) distance = d, best = &r;
  }
  if (best && distance < (uintptr_t{1} << 30))
    crash("%s %s out of bounds of '%s': %zu bytes %s", where(), verb, best->name, static_cast<size_t>(distance),
          address < best->begin ? "before its start" : "past its end");
  crash("%s %s at %p, where nothing is", where(), verb, info->si_addr);
}

void on_signal(int number, siginfo_t*, void*) {
  if (number == SIGXCPU) {
    note("the time for the run is used up in %s", where());
    end(exit_time);
  }
  const char* what = number == SIGFPE ? "a division by zero" : number == SIGILL ? "a trap" : "an abort";
  crash("%s in %s", what, where());
}

}  // namespace

void note(const char* format, ...) {
  va_list list;
  va_start(list, format);
  say(format, list);
  va_end(list);
}

void crash(const char* format, ...) {
  va_list list;
  va_start(list, format);
  say(format, list);
  va_end(list);
  end(exit_crash);
}

void lacks(const char* what) {
  note("the emulation lacks %s", what);
  end(exit_lacks);
}

void add_region(const char* name, const void* begin, size_t bytes, size_t data, bool read_only) {
  if (region_count == sizeof regions / sizeof *regions) return;
  auto b = reinterpret_cast<uintptr_t>(begin);
  regions[region_count++] = {name, b, b + bytes, b + data, read_only};
}

}  // namespace emu

extern "C" {

#pragma GCC visibility push(default)  // what the worker calls
void emu_setup(char* report_memory, int backwards) {
  emu::report = report_memory;
  emu::reported = 0;
  emu::set_order(backwards != 0);
  stack_t stack{};
  stack.ss_sp = emu::signal_stack;
  stack.ss_size = sizeof emu::signal_stack;
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  action.sa_sigaction = emu::on_fault;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
  action.sa_sigaction = emu::on_signal;
  for (int number : {SIGABRT, SIGFPE, SIGILL, SIGXCPU, SIGTRAP}) sigaction(number, &action, nullptr);
}

void emu_tail(uint64_t rows, uint64_t count) { emu::set_tail(rows, count); }

void emu_region(const char* name, const void* begin, size_t bytes, int read_only) {
  emu::add_region(name, begin, bytes, bytes, read_only != 0);
}

#pragma GCC visibility pop

// assert() in device or host code.
void __assert_fail(const char* text, const char* file, unsigned line, const char*) {
  emu::crash("assertion '%s' (%s:%u) failed in %s", text, file, line, emu::where());
}

// The sanitizer's findings end here instead of in its library.
struct emu_source {
  const char* file;
  uint32_t line, column;
};
struct emu_type {
  uint16_t kind, info;
  char name[1];
};
struct emu_mismatch {
  emu_source place;
  const emu_type* type;
  unsigned char log_align, check;
};
struct emu_bounds {
  emu_source place;
  const emu_type *array, *index;
};

void __ubsan_handle_type_mismatch_v1_abort(emu_mismatch* found, uintptr_t pointer) {
  static const char* const kinds[] = {"load", "store", "access", "access", "access", "access", "access", "access"};
  if (!pointer) emu::crash("null pointer %s in %s (line %u)", kinds[found->check & 7], emu::where(), found->place.line);
  emu::crash("misaligned %s of %s in %s: address %#zx, needs %u bytes (line %u)", kinds[found->check & 7],
             found->type->name, emu::where(), static_cast<size_t>(pointer), 1u << found->log_align, found->place.line);
}
void __ubsan_handle_type_mismatch_v1(emu_mismatch* found, uintptr_t pointer) {
  __ubsan_handle_type_mismatch_v1_abort(found, pointer);
}
void __ubsan_handle_out_of_bounds_abort(emu_bounds* found, uintptr_t index) {
  emu::crash("index %zd is outside of %s in %s (line %u)", static_cast<ssize_t>(index), found->array->name, emu::where(),
             found->place.line);
}
void __ubsan_handle_out_of_bounds(emu_bounds* found, uintptr_t index) { __ubsan_handle_out_of_bounds_abort(found, index); }
}
