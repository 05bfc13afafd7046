// One group of a tensor core's dot product, exactly as docs/arithmetic.md ("One tensor-core product") says,
// in integers. Slow and plain: the vectorised split is tested against it.
#pragma once

#include "grouped/arch.h"
#include "grouped/nan.h"
#include "grouped/platform.h"

namespace grouped {

using CurrentArch = Arch<GROUPED_SM>;

// A finite operand: value = significand * 2^(exponent - scale), scale 10 for fp16 and 23 for fp32.
struct Significand {
  bool negative;
  i64 magnitude;
  i32 exponent;
};

GROUPED_HD bool half_is_nan(u16 x) { return (x & 0x7FFFu) > 0x7C00u; }
GROUPED_HD bool half_is_infinite(u16 x) { return (x & 0x7FFFu) == 0x7C00u; }
GROUPED_HD bool half_is_zero(u16 x) { return (x & 0x7FFFu) == 0; }

GROUPED_HD Significand unpack_half(u16 x) {
  const i32 field = (x >> 10) & 0x1F;
  const i64 fraction = x & 0x3FF;
  return Significand{(x >> 15) != 0, field ? fraction | 0x400 : fraction, (field ? field : 1) - 15};
}

GROUPED_HD Significand unpack_float(float x) {
  const u32 bits = float_bits(x);
  const i32 field = i32((bits >> 23) & 0xFF);
  const i64 fraction = bits & 0x7FFFFF;
  return Significand{(bits >> 31) != 0, field ? fraction | 0x800000 : fraction, (field ? field : 1) - 127};
}

// magnitude * 2^shift, truncated toward zero.
GROUPED_HD i64 shift_truncating(i64 magnitude, i32 shift) {
  if (shift >= 0) return magnitude << shift;
  return shift <= -63 ? 0 : magnitude >> -shift;
}

// sum * 2^exponent as fp32, truncated toward zero, subnormals kept; too large: infinity.
GROUPED_HD float truncate_to_float(i64 sum, i32 exponent) {
  if (sum == 0) return 0.0f;
  const u32 sign = sum < 0 ? 0x80000000u : 0u;
  const u64 magnitude = sum < 0 ? u64(-sum) : u64(sum);
  const i32 top = 63 - __builtin_clzll(magnitude);
  i32 field = top + exponent + 127;
  if (field >= 255) return bits_float(sign | 0x7F800000u);
  const bool subnormal = field < 1;
  const i32 unit = subnormal ? -149 : top + exponent - 23;  // exponent of the result's last bit
  const u32 fraction = u32(shift_truncating(i64(magnitude), exponent - unit));
  return bits_float(sign | (subnormal ? fraction : (u32(field) << 23) | (fraction & 0x7FFFFFu)));
}

// What infinities and NaN make of a group; `found` is false if all operands are finite.
struct SpecialResult {
  bool found;
  float value;
};

GROUPED_HD SpecialResult special_result(const u16* a, const u16* b, i32 length, float c) {
  bool nan = is_nan(c), plus = float_bits(c) == 0x7F800000u, minus = float_bits(c) == 0xFF800000u;
  for (i32 i = 0; i < length; ++i) {
    const bool infinite = half_is_infinite(a[i]) || half_is_infinite(b[i]);
    nan = nan || half_is_nan(a[i]) || half_is_nan(b[i]);
    nan = nan || (infinite && (half_is_zero(a[i]) || half_is_zero(b[i])));
    const bool negative = ((a[i] ^ b[i]) & 0x8000u) != 0;
    plus = plus || (infinite && !negative);
    minus = minus || (infinite && negative);
  }
  if (nan || (plus && minus)) return SpecialResult{true, nan_value()};
  return SpecialResult{plus || minus, bits_float(plus ? 0x7F800000u : 0xFF800000u)};
}

constexpr i32 kNoExponent = -1000;  // of a group whose terms are all zero

GROUPED_HD i32 largest_exponent(const u16* a, const u16* b, i32 length, Significand c) {
  i32 largest = c.magnitude ? c.exponent : kNoExponent;
  for (i32 i = 0; i < length; ++i) {
    if (half_is_zero(a[i]) || half_is_zero(b[i])) continue;
    const i32 exponent = unpack_half(a[i]).exponent + unpack_half(b[i]).exponent;
    if (exponent > largest) largest = exponent;
  }
  return largest;
}

// d = c + sum(a[i] * b[i]) over one group of the architecture.
GROUPED_HD float group_product(const u16* a, const u16* b, float c) {
  constexpr i32 length = CurrentArch::group_length, fraction = CurrentArch::fraction_bits;
  const SpecialResult special = special_result(a, b, length, c);
  if (special.found) return special.value;
  const Significand addend = unpack_float(c);
  const i32 largest = largest_exponent(a, b, length, addend);
  if (largest == kNoExponent) return 0.0f;
  i64 sum = shift_truncating(addend.magnitude, addend.exponent - largest + fraction - 23);
  if (addend.negative) sum = -sum;
  for (i32 i = 0; i < length; ++i) {
    const Significand x = unpack_half(a[i]), y = unpack_half(b[i]);
    const i32 shift = x.exponent + y.exponent - largest + fraction - 20;
    const i64 term = x.magnitude * y.magnitude == 0 ? 0 : shift_truncating(x.magnitude * y.magnitude, shift);
    sum += x.negative != y.negative ? -term : term;
  }
  return truncate_to_float(sum, largest - fraction);
}

// A longer product: groups ascend, each with the last result as its c. `length` is a multiple of the group's.
GROUPED_HD float tensor_core_product(const u16* a, const u16* b, i64 length, float c) {
  for (i64 i = 0; i < length; i += CurrentArch::group_length) c = group_product(a + i, b + i, c);
  return c;
}

}  // namespace grouped
