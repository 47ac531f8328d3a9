// Included before everything else of an emulated translation unit: CUDA's own types from the toolkit's
// headers (read as a host compiler does), device functions from here, then the tensor stand-in.
#pragma once
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#undef __shared__
#undef __device__
#undef __global__
#undef __host__
#undef __constant__
#undef __managed__
#undef __grid_constant__
#undef __launch_bounds__
#undef __forceinline__
#undef __noinline__
#undef __cluster_dims__
// One OS thread runs everything, so its thread-local block holds the shared memory of the block that runs.
#define __shared__ static thread_local
#define __device__
#define __global__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))

#include "engine.hpp"
#include "host.hpp"
#include "math.hpp"
#include "memory.hpp"
#include "warp.hpp"
#include "half.hpp"
#include "launch.hpp"
#include "ptx.hpp"
#include "block.hpp"
#include "groups.hpp"
#include "torch.hpp"

using std::isfinite;
using std::isinf;
using std::isnan;

#define __CUDA_ARCH__ 900
