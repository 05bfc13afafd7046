// The kernels of one architecture. Their names are what src/cuda/kernels.cc asks the cubin for.
#include "cuda/combine.cuh"
#include "cuda/layout.h"
#include "cuda/split.cuh"

static_assert(GROUPED_SM * 10 == __CUDA_ARCH__, "GROUPED_SM must name the architecture compiled for");

#define GROUPED_SPLIT(heads, head_dim, row_tiles)                                                   \
  extern "C" __global__ void __launch_bounds__(grouped::kThreads, 1)                                \
      grouped_split_##heads##x##head_dim##_##row_tiles(                                             \
          const __grid_constant__ grouped::SplitArguments arguments) {                              \
    extern __shared__ __align__(16) grouped::u8 memory[];                                           \
    grouped::run_split<grouped::Layout<heads, head_dim, row_tiles, GROUPED_SM>>(arguments, memory); \
  }

#define GROUPED_COMBINE(heads, head_dim)                                                                  \
  extern "C" __global__ void __launch_bounds__(grouped::kThreads)                                         \
      grouped_combine_##heads##x##head_dim(const __grid_constant__ grouped::CombineArguments arguments) { \
    grouped::run_combine<heads, head_dim, grouped::Arch<GROUPED_SM>::splits>(arguments);                  \
  }

GROUPED_SPLIT(6, 256, 1)
GROUPED_SPLIT(6, 256, 2)
GROUPED_SPLIT(6, 256, 3)
GROUPED_COMBINE(6, 256)

GROUPED_SPLIT(3, 64, 1)
GROUPED_SPLIT(3, 64, 2)
GROUPED_COMBINE(3, 64)
