// The embedded cubin's kernels, loaded once per device.
#pragma once

#include <string>

#include "cuda/driver.h"
#include "cuda/launch.h"

namespace grouped {

// One split kernel: an instance (heads, head_dim) for up to row_tiles * 16 packed rows.
struct SplitKernel {
  driver::Function function = nullptr;
  unsigned shared_bytes = 0;
};

struct DeviceKernels {
  driver::Context context = nullptr;  // the device's primary one, as used by the CUDA runtime
  SplitKernel split_6x256[3];         // by row tiles - 1
  SplitKernel split_3x64[2];
  driver::Function combine_6x256 = nullptr;
  driver::Function combine_3x64 = nullptr;
};

// Loads the kernels at a device's first use, so call it before a graph capture. RuntimeError when the device
// is of another architecture, or the driver refuses.
const DeviceKernels& kernels_of(i32 device);

// Dynamic shared memory of every kernel by name, as JSON. The cubin doesn't hold it; needs no device.
std::string describe_kernels();

}  // namespace grouped
