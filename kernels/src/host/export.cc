// What the library exports. Every call: validate, prepare, dispatch, run.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>

#include <string>

#include "common/describe.h"
#include "common/float_environment.h"
#include "common/validate.h"
#include "host/dispatch.h"
#include "host/parallel.h"
#include "host/run.h"
#include "host/tensor_core.h"

namespace grouped {
namespace {

using tvm::ffi::TensorView;

void attention(TensorView q, TensorView k_cache, TensorView v_cache, TensorView block_table,
               TensorView row_lens, TensorView out, TensorView acc, TensorView max_sum, double softmax_scale,
               double k_scale, double v_scale, i64) {
  const Arguments arguments{q,   k_cache, v_cache,       block_table, row_lens, &out,
                            acc, max_sum, softmax_scale, k_scale,     v_scale};
  run_attention(validate(arguments, kDLCPU, CurrentArch::splits));
}

void partials(TensorView q, TensorView k_cache, TensorView v_cache, TensorView block_table,
              TensorView row_lens, TensorView acc, TensorView max_sum, double softmax_scale, double k_scale,
              double v_scale, i64) {
  const Arguments arguments{q,   k_cache, v_cache,       block_table, row_lens, nullptr,
                            acc, max_sum, softmax_scale, k_scale,     v_scale};
  run_partials(validate(arguments, kDLCPU, CurrentArch::splits));
}

bool is_matrix(const TensorView& tensor, i64 rows, i64 columns, int code, int bits) {
  const DLDataType dtype = tensor.dtype();
  const bool shaped = columns < 0 ? tensor.ndim() == 1 && tensor.size(0) == rows
                                  : tensor.ndim() == 2 && tensor.size(0) == rows && tensor.size(1) == columns;
  return shaped && dtype.code == code && dtype.bits == bits && dtype.lanes == 1 && tensor.IsContiguous() &&
         tensor.device().device_type == kDLCPU;
}

template <typename T>
T* data(const TensorView& tensor) {
  return reinterpret_cast<T*>(static_cast<char*>(tensor.data_ptr()) + tensor.byte_offset());
}

void tensor_core_dot(TensorView a, TensorView b, TensorView c, TensorView d) {
  const i64 rows = a.ndim() == 2 ? a.size(0) : -1, length = a.ndim() == 2 ? a.size(1) : -1;
  if (!is_matrix(a, rows, length, kDLUInt, 16) || !is_matrix(b, rows, length, kDLUInt, 16) ||
      !is_matrix(c, rows, -1, kDLFloat, 32) || !is_matrix(d, rows, -1, kDLFloat, 32)) {
    TVM_FFI_THROW(ValueError)
        << "tensor_core_dot takes contiguous cpu tensors: uint16 [n, K] twice (fp16 bits), "
           "then float32 [n] twice";
  }
  if (length % CurrentArch::group_length != 0) {
    TVM_FFI_THROW(ValueError) << "K must be a multiple of " << CurrentArch::group_length << ", got "
                              << length;
  }
  for (i64 i = 0; i < rows; ++i) {
    data<float>(d)[i] = tensor_core_product(data<const u16>(a) + i * length, data<const u16>(b) + i * length,
                                            length, data<const float>(c)[i]);
  }
}

std::string describe_library() { return describe("host", GROUPED_SM, CurrentArch::splits); }

std::string cpu_implementation() { return implementation().name; }

i64 precision_version() { return kPrecisionVersion; }

void set_threads(i64 threads) { set_num_threads(threads > 4096 ? 4096 : i32(threads)); }

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(precision_version, precision_version);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(describe, describe_library);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(grouped_e4m3_fp32, attention);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(grouped_e4m3_fp32_partials, partials);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(tensor_core_dot, tensor_core_dot);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(set_num_threads, set_threads);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(cpu_implementation, cpu_implementation);

}  // namespace grouped
