// The shared headers behind a C interface, for the tests.
#include <cmath>
#include <cstdint>

#include "grouped/e4m3.h"
#include "grouped/exp.h"
#include "grouped/half.h"
#include "grouped/pages.h"
#include "grouped/schedule.h"

namespace {

double error_ulp(float found, double exact) {
  int exponent;
  std::frexp(exact, &exponent);
  return std::fabs(double(found) - exact) * std::ldexp(1.0, 24 - exponent);
}

}  // namespace

extern "C" {

// The largest error of exp32 over the arguments with these bits, in ulp of the exact value.
double largest_error_ulp(uint32_t first, uint32_t last) {
  double largest = 0.0;
  for (uint32_t bits = first; bits <= last; ++bits) {
    const float x = grouped::bits_float(bits);
    const double error = error_ulp(grouped::exp32(x), std::exp(double(x)));
    largest = error > largest || error != error ? error : largest;
  }
  return largest;
}

uint32_t exp_bits(uint32_t bits) { return grouped::float_bits(grouped::exp32(grouped::bits_float(bits))); }

uint32_t clamped_exp_bits(uint32_t bits) {
  return grouped::float_bits(grouped::clamped_exp(grouped::bits_float(bits)));
}

void to_half(const float* from, uint16_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = grouped::half_bits(from[i]);
}

void from_half(const uint16_t* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = grouped::half_value(from[i]);
}

void decode(uint16_t* value, uint16_t* residual) {
  for (int code = 0; code < 256; ++code) {
    value[code] = grouped::e4m3_half_bits(uint8_t(code));
    residual[code] = grouped::e4m3_residual_half_bits(uint8_t(code));
  }
}

int32_t active_splits(int32_t longest, int32_t splits) { return grouped::active_splits(longest, splits); }

int32_t tile_begin(int32_t longest, int32_t splits, int32_t split) {
  return grouped::split_tiles(longest, splits, split).begin;
}

int32_t tile_end(int32_t longest, int32_t splits, int32_t split) {
  return grouped::split_tiles(longest, splits, split).end;
}

int64_t token_offset(const int32_t* table, int32_t page, int64_t block_bytes, int64_t token_bytes,
                     int32_t token) {
  return grouped::token_offset(table, page, grouped::CacheStrides{block_bytes, token_bytes}, token);
}
}
