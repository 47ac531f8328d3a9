// The CUDA runtime's host functions, for one device that is data: an H100 (compute capability 9.0).
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "emu/host.hpp"

namespace emu {
namespace {
cudaError_t pending = cudaSuccess;
constexpr size_t page = 4096;
}  // namespace

// NVIDIA H100 SXM, as its data sheet and the CUDA programming guide (compute capability 9.0) give it.
cudaDeviceProp& device() {
  static cudaDeviceProp properties = [] {
    cudaDeviceProp p{};
    std::snprintf(p.name, sizeof p.name, "NVIDIA H100 (emulated)");
    p.major = 9;
    p.minor = 0;
    p.multiProcessorCount = 132;
    p.warpSize = 32;
    p.maxThreadsPerBlock = 1024;
    p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
    p.maxThreadsDim[2] = 64;
    p.maxGridSize[0] = 2147483647;
    p.maxGridSize[1] = p.maxGridSize[2] = 65535;
    p.maxThreadsPerMultiProcessor = 2048;
    p.maxBlocksPerMultiProcessor = 32;
    p.regsPerBlock = p.regsPerMultiprocessor = 65536;
    p.sharedMemPerBlock = 49152;
    p.sharedMemPerBlockOptin = 232448;
    p.sharedMemPerMultiprocessor = 233472;
    p.reservedSharedMemPerBlock = 1024;
    p.totalGlobalMem = size_t{80} << 30;
    p.l2CacheSize = 50 << 20;
    p.memoryBusWidth = 5120;
    p.concurrentKernels = p.unifiedAddressing = p.managedMemory = p.cooperativeLaunch = 1;
    return p;
  }();
  return properties;
}

void set_error(cudaError_t error) {
  if (error != cudaSuccess) pending = error;
}

void* allocate(size_t bytes) {
  size_t whole = (bytes + page - 1) & ~(page - 1);
  char* memory = static_cast<char*>(
      mmap(nullptr, whole + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (memory == MAP_FAILED) return nullptr;
  mprotect(memory, page, PROT_NONE);
  mprotect(memory + page + whole, page, PROT_NONE);
  // The end lies at the guard page, as near as the 256 bytes of cudaMalloc's alignment allow.
  char* data = memory + page + ((whole - bytes) & ~size_t{255});
  std::memset(memory + page, 0xFF, whole);
  add_region("memory that the op allocated", data, bytes ? bytes : 1, bytes ? bytes : 1);
  return data;
}

}  // namespace emu

using emu::device;

extern "C" {
cudaError_t cudaGetLastError() {
  cudaError_t error = emu::pending;
  emu::pending = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return emu::pending; }
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    default: return "CUDA error";
  }
}
const char* cudaGetErrorName(cudaError_t error) { return cudaGetErrorString(error); }
cudaError_t cudaGetDevice(int* id) { return *id = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int id) { return id == 0 ? cudaSuccess : cudaErrorInvalidDevice; }
cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int) { return *out = device(), cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const cudaDeviceProp& p = device();
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; break;
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY: *value = 1024; break;
    case cudaDevAttrMaxBlockDimZ: *value = 64; break;
    case cudaDevAttrMaxGridDimX: *value = p.maxGridSize[0]; break;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: *value = p.maxGridSize[1]; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = static_cast<int>(p.sharedMemPerBlock); break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = static_cast<int>(p.sharedMemPerBlockOptin); break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = static_cast<int>(p.sharedMemPerMultiprocessor); break;
    case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
    case cudaDevAttrComputeCapabilityMajor: *value = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = p.minor; break;
    case cudaDevAttrWarpSize: *value = 32; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = p.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *value = p.maxBlocksPerMultiProcessor; break;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: *value = p.regsPerBlock; break;
    case cudaDevAttrL2CacheSize: *value = p.l2CacheSize; break;
    case cudaDevAttrCooperativeLaunch: *value = 1; break;
    default: emu::lacks("a device attribute that the host function asks for");
  }
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || static_cast<size_t>(value) > device().sharedMemPerBlockOptin) {
    emu::set_error(cudaErrorInvalidValue);
    return cudaErrorInvalidValue;
  }
  emu::opt_in(kernel, static_cast<size_t>(value));
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(device().sharedMemPerBlock);
  return cudaSuccess;
}
// Registers and static shared memory are not known here: threads and dynamic shared memory decide.
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int threads, size_t bytes,
                                                                   unsigned) {
  int fit = threads > 0 ? 2048 / threads : 0;
  size_t each = bytes + device().reservedSharedMemPerBlock;
  int by_memory = static_cast<int>(device().sharedMemPerMultiprocessor / each);
  *blocks = fit < by_memory ? fit : by_memory;
  if (*blocks > 32) *blocks = 32;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads, size_t bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, threads, bytes, 0);
}
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  *memory = emu::allocate(bytes);
  return *memory ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaMallocAsync(void** memory, size_t bytes, cudaStream_t) { return cudaMalloc(memory, bytes); }
cudaError_t cudaFree(void*) { return cudaSuccess; }
cudaError_t cudaFreeAsync(void*, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMemset(void* memory, int value, size_t bytes) { return std::memset(memory, value, bytes), cudaSuccess; }
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t) { return cudaMemset(memory, value, bytes); }
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  return std::memmove(to, from, bytes), cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return emu::pending; }
cudaError_t cudaDeviceSynchronize() { return emu::pending; }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  return *status = cudaStreamCaptureStatusNone, cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) { return *least = *greatest = 0, cudaSuccess; }
}
