// exp on [-80, 0], within 1 ulp, from explicit fp32 operations.
#pragma once

#include "grouped/fp32.h"
#include "grouped/nan.h"

namespace grouped {

constexpr float kSmallestExponent = -80.0f;

// x in [-80, 0], not NaN.
GROUPED_HD float exp32_finite(float x) {
  const float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, ties to even
  const float shifted = add(mul(x, bits_float(0x3FB8AA3Bu)), magic);
  const float n = sub(shifted, magic);
  float r = fma(n, -0.693359375f, x);
  r = fma(n, bits_float(0x395E8083u), r);
  float y = bits_float(0x3AB511E8u);
  y = fma(y, r, bits_float(0x3C091D10u));
  y = fma(y, r, bits_float(0x3D2AAC79u));
  y = fma(y, r, bits_float(0x3E2AAA49u));
  y = fma(y, r, bits_float(0x3EFFFFFEu));
  y = fma(y, r, 1.0f);
  y = fma(y, r, 1.0f);
  // The low bits of `shifted` hold n; what the shift pushes out is the magic number itself.
  return bits_float(float_bits(y) + (float_bits(shifted) << 23));
}

GROUPED_HD float exp32(float x) {
  const float finite = exp32_finite(x);  // computed first: a select, not a branch
  return is_nan(x) ? nan_value() : finite;
}

// exp with its argument clamped at -80; a NaN passes the clamp.
GROUPED_HD float clamped_exp(float x) { return exp32(x < kSmallestExponent ? kSmallestExponent : x); }

}  // namespace grouped
