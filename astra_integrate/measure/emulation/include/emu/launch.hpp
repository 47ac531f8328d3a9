// The launch and attribute templates of cuda_runtime.h, which a host compiler does not get.
#pragma once
#include "engine.hpp"
#include "host.hpp"

namespace emu {
template <class... P, class... A>
cudaError_t launch_ex(const cudaLaunchConfig_t* config, void (*kernel)(P...), A&&... arguments) {
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == cudaLaunchAttributeClusterDimension &&
        attribute.val.clusterDim.x * attribute.val.clusterDim.y * attribute.val.clusterDim.z > 1)
      emu::lacks("thread block clusters");
    if (attribute.id == cudaLaunchAttributeCooperative && attribute.val.cooperative) emu::lacks("cooperative launches");
  }
  emu::Launch launch{config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream};
  return emu::launch_kernel<P...>(launch, kernel, std::tuple<P...>(std::forward<A>(arguments)...));
}
template <class... P, size_t... I>
std::tuple<P...> unpack(void** arguments, std::index_sequence<I...>) {
  return {*static_cast<std::remove_reference_t<P>*>(arguments[I])...};
}
}  // namespace emu
// The toolkit's own template of this name hands over bytes, from which no call can be made here.
#define cudaLaunchKernelEx ::emu::launch_ex
template <class... P>
cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments, size_t shared = 0,
                             cudaStream_t stream = nullptr) {
  return emu::launch_kernel<P...>({grid, block, shared, stream}, kernel,
                                  emu::unpack<P...>(arguments, std::index_sequence_for<P...>{}));
}
template <class... P>
cudaError_t cudaLaunchCooperativeKernel(void (*)(P...), dim3, dim3, void**, size_t = 0, cudaStream_t = nullptr) {
  emu::lacks("cooperative launches");
}

template <class... P>
cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <class... P>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*kernel)(P...)) {
  return cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(kernel));
}
template <class... P>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void (*kernel)(P...), int threads, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, reinterpret_cast<const void*>(kernel), threads, shared);
}
template <class T>
cudaError_t cudaMemcpyToSymbol(T& symbol, const void* from, size_t bytes, size_t offset = 0,
                               cudaMemcpyKind = cudaMemcpyHostToDevice) {
  std::memcpy(reinterpret_cast<char*>(&symbol) + offset, from, bytes);
  return cudaSuccess;
}
