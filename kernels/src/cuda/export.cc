// What the library exports. Every call: 1 validate, 2 guard the device, 3 dispatch, 4 split, 5 combine.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

#include <string>

#include "common/describe.h"
#include "common/validate.h"
#include "cuda/driver.h"
#include "cuda/kernels.h"
#include "cuda/launch.h"

namespace grouped {
namespace {

using tvm::ffi::TensorView;

constexpr i32 kSplits = Arch<GROUPED_SM>::splits;
constexpr const char* kLaunchAdvice =
    "the launch was refused; if an earlier kernel failed on this device, the process must be restarted";

SplitArguments split_arguments(const Problem& p) {
  SplitArguments a{};
  a.q = p.q, a.k = p.k, a.v = p.v;
  a.block_table = p.block_table, a.row_lens = p.row_lens;
  a.acc = p.acc, a.max_sum = p.max_sum;
  a.k_strides = p.k_strides, a.v_strides = p.v_strides;
  a.rows = p.rows, a.page = p.page, a.capacity = p.capacity, a.acc_rows = p.acc_rows;
  a.score_scale = p.score_scale, a.v_scale = p.v_scale;
  a.wide_query = p.q_aligned16;
  a.wide_loads = p.k_aligned16 && p.v_aligned16;
  a.write_unused = p.out == nullptr;
  return a;
}

CombineArguments combine_arguments(const Problem& p) {
  return CombineArguments{p.acc, p.max_sum, p.row_lens, p.out, p.rows, p.capacity, p.acc_rows};
}

// What one call launches.
struct Dispatch {
  SplitKernel split;
  driver::Function combine;
};

// `validate` let through (6, 256) and (3, 64) only.
Dispatch dispatch(const DeviceKernels& kernels, const Problem& p) {
  const i32 row_tiles = (p.rows * p.heads + kRowTile - 1) / kRowTile;
  if (p.head_dim == 256) return Dispatch{kernels.split_6x256[row_tiles - 1], kernels.combine_6x256};
  return Dispatch{kernels.split_3x64[row_tiles - 1], kernels.combine_3x64};
}

template <typename Arguments>
void launch(driver::Function function, i32 grid_x, i32 grid_y, unsigned shared_bytes, driver::Stream stream,
            Arguments arguments) {
  void* parameters[] = {&arguments};
  driver::check(driver::api().launch(function, unsigned(grid_x), unsigned(grid_y), 1, kThreads, 1, 1,
                                     shared_bytes, stream, parameters, nullptr),
                "cuLaunchKernel", kLaunchAdvice);
}

void run(const Problem& p, i64 stream_handle) {
  const DeviceKernels& kernels = kernels_of(p.device.device_id);
  const driver::ContextGuard guard(kernels.context);
  const driver::Stream stream = reinterpret_cast<driver::Stream>(stream_handle);
  const Dispatch chosen = dispatch(kernels, p);
  launch(chosen.split.function, kSplits, 1, chosen.split.shared_bytes, stream, split_arguments(p));
  if (p.out == nullptr) return;
  launch(chosen.combine, p.rows * p.heads, p.head_dim / kCombineDims, 0, stream, combine_arguments(p));
}

void attention(TensorView q, TensorView k_cache, TensorView v_cache, TensorView block_table,
               TensorView row_lens, TensorView out, TensorView acc, TensorView max_sum, double softmax_scale,
               double k_scale, double v_scale, i64 stream) {
  const Arguments arguments{q,   k_cache, v_cache,       block_table, row_lens, &out,
                            acc, max_sum, softmax_scale, k_scale,     v_scale};
  run(validate(arguments, kDLCUDA, kSplits), stream);
}

void partials(TensorView q, TensorView k_cache, TensorView v_cache, TensorView block_table,
              TensorView row_lens, TensorView acc, TensorView max_sum, double softmax_scale, double k_scale,
              double v_scale, i64 stream) {
  const Arguments arguments{q,   k_cache, v_cache,       block_table, row_lens, nullptr,
                            acc, max_sum, softmax_scale, k_scale,     v_scale};
  run(validate(arguments, kDLCUDA, kSplits), stream);
}

// Loads the kernels onto a device ahead of the first call: nothing may be loaded while a graph is captured.
void prepare(i64 device) { kernels_of(i32(device)); }

std::string describe_library() { return describe("cuda", GROUPED_SM, kSplits, describe_kernels()); }

i64 precision_version() { return kPrecisionVersion; }

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(precision_version, precision_version);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(describe, describe_library);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(prepare, prepare);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(grouped_e4m3_fp32, attention);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(grouped_e4m3_fp32_partials, partials);

}  // namespace grouped
