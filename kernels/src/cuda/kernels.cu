// The kernels of one architecture. Their names are what src/cuda/kernels.cc asks the cubin for.
#include "cuda/combine.cuh"
#include "cuda/layout.h"
#include "cuda/split.cuh"

namespace grouped {
constexpr i32 kSm = __CUDA_ARCH__ / 10;
}

#define GROUPED_SPLIT(heads, head_dim, row_tiles)                                                          \
  extern "C" __global__ void __launch_bounds__(grouped::kThreads, 1)                                       \
      grouped_split_##heads##x##head_dim##_##row_tiles(const __grid_constant__ grouped::SplitArguments arguments) { \
    extern __shared__ __align__(16) grouped::u8 memory[];                                                  \
    grouped::run_split<grouped::Layout<heads, head_dim, row_tiles, grouped::kSm>>(arguments, memory);      \
  }

#define GROUPED_COMBINE(heads, head_dim)                                                                   \
  extern "C" __global__ void __launch_bounds__(grouped::kThreads)                                          \
      grouped_combine_##heads##x##head_dim(const __grid_constant__ grouped::CombineArguments arguments) {  \
    grouped::run_combine<heads, head_dim, grouped::Arch<grouped::kSm>::splits>(arguments);                 \
  }

GROUPED_SPLIT(6, 256, 1)
GROUPED_SPLIT(6, 256, 2)
GROUPED_SPLIT(6, 256, 3)
GROUPED_COMBINE(6, 256)

GROUPED_SPLIT(3, 64, 1)
GROUPED_SPLIT(3, 64, 2)
GROUPED_COMBINE(3, 64)
