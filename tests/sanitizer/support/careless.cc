// A user's own kernel with mistakes: it reads CARELESS bytes behind the cache, and keeps LEAKED bytes a call,
// or each for which LEAK_IF holds.
// Its output is always zero.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

using tvm::ffi::TensorView;

#ifndef CARELESS
#define CARELESS 0
#endif
#ifndef LEAKED
#define LEAKED 0
#endif

#ifndef LEAK_IF
#define LEAK_IF true
#endif

volatile int sink;
void* volatile kept;

void leak(TensorView q, TensorView k) {
  if (LEAKED > 0 && q.ndim() == 3 && k.ndim() == 4 && (LEAK_IF)) kept = std::malloc(LEAKED);
}

void attention(TensorView q, TensorView k, TensorView, TensorView, TensorView, TensorView out, TensorView,
               TensorView, double, double, double, int64_t) {
  int64_t bytes = 1;
  for (int dim = 0; dim < k.ndim(); ++dim) bytes += (k.size(dim) - 1) * k.stride(dim);
  const auto* codes = static_cast<const uint8_t*>(k.data_ptr()) + k.byte_offset();
  sink = codes[bytes - 1 + CARELESS];
  leak(q, k);
  const size_t count = size_t(q.size(0)) * size_t(q.size(1)) * size_t(q.size(2));
  std::memset(static_cast<char*>(out.data_ptr()) + out.byte_offset(), 0, 2 * count);
}

void partials(TensorView q, TensorView k, TensorView, TensorView, TensorView, TensorView, TensorView, double,
              double, double, int64_t) {
  leak(q, k);
}

std::string describe() {
  return R"({"backend": "host", "arch": "sm_70", "splits": 80, "precision_version": 4,)"
         R"( "instances": [[3, 64], [6, 256]]})";
}

int64_t precision_version() { return 4; }

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(precision_version, precision_version);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(describe, describe);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(grouped_e4m3_fp32, attention);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(grouped_e4m3_fp32_partials, partials);
