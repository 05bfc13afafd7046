// A kernel of your own, as plain as can be: attention in double, one element at a time. It gives other bits
// than the suite's kernel, and refuses too little: `sanitizer memcheck --library` says what.
//
//   g++ -std=c++17 -shared -fPIC -O1 -g -fsanitize=address naive.cc -o naive.so
//     $(python -m tvm_ffi.config --cxxflags --ldflags --libs)
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

using tvm::ffi::TensorView;

namespace {

template <typename T>
T* data(TensorView t) {
  return reinterpret_cast<T*>(static_cast<char*>(t.data_ptr()) + t.byte_offset());
}

double from_e4m3(uint8_t code) {
  const int exponent = code >> 3 & 15, fraction = code & 7;
  if ((code & 127) == 127) return NAN;
  const double size = exponent ? std::ldexp(8 + fraction, exponent - 10) : std::ldexp(fraction, -9);
  return code & 128 ? -size : size;
}

_Float16 rounded(double x) {
  return std::isnan(x) ? __builtin_bit_cast(_Float16, uint16_t{0x7FFF})
                       : _Float16(x);  // the one NaN there is
}

// Caches are [pages, page, 1, dim] with any strides of pages and tokens.
const uint8_t* token_at(TensorView cache, TensorView table, int64_t token) {
  const int64_t page = cache.size(1), block = data<const int32_t>(table)[token / page];
  return data<const uint8_t>(cache) + block * cache.stride(0) + token % page * cache.stride(1);
}

void attention(TensorView q, TensorView k, TensorView v, TensorView table, TensorView lens, TensorView out,
               TensorView, TensorView, double scale, double k_scale, double v_scale, int64_t) {
  if (!(scale > 0)) TVM_FFI_THROW(ValueError) << "softmax_scale is " << scale << ": it must be positive";
  const int64_t rows = q.size(0), heads = q.size(1), dim = q.size(2), capacity = table.size(1) * k.size(1);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t length = data<const int32_t>(lens)[row];
    for (int64_t head = 0; head < heads; ++head) {
      const int64_t first = (row * heads + head) * dim;
      const _Float16* query = data<const _Float16>(q) + first;
      std::vector<double> sum(dim);
      double total = length > capacity ? NAN : 0;
      for (int64_t token = 0; token < length && length <= capacity; ++token) {
        const uint8_t* key = token_at(k, table, token);
        const uint8_t* value = token_at(v, table, token);
        double score = 0;
        for (int64_t d = 0; d < dim; ++d) score += double(query[d]) * from_e4m3(key[d]);
        const double weight = std::exp(score * scale * k_scale - 20);
        for (int64_t d = 0; d < dim; ++d) sum[d] += weight * from_e4m3(value[d]);
        total += weight;
      }
      _Float16* result = data<_Float16>(out) + first;
      for (int64_t d = 0; d < dim; ++d) result[d] = rounded(total == 0 ? 0 : sum[d] / total * v_scale);
    }
  }
}

// For debugging; with nothing to show, it may do nothing.
void partials(TensorView, TensorView, TensorView, TensorView, TensorView, TensorView, TensorView, double,
              double, double, int64_t) {}

std::string describe() {
  return R"({"backend": "host", "arch": "sm_90", "splits": 1, "precision_version": 4,)"
         R"( "instances": [[6, 256], [3, 64]]})";
}

int64_t precision_version() { return 4; }

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(precision_version, precision_version);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(describe, describe);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(grouped_e4m3_fp32, attention);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(grouped_e4m3_fp32_partials, partials);
