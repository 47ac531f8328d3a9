// torch generates this header in a CUDA build only; a CPU wheel lacks it and means the same.
#pragma once
#define C10_CUDA_BUILD_SHARED_LIBS
