// fp16 as its bits: conversions from and to fp32, subnormals kept.
#pragma once

#include "grouped/nan.h"
#include "grouped/platform.h"

namespace grouped {

#if defined(__CUDA_ARCH__)

GROUPED_HD u16 half_bits(float x) {
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

GROUPED_HD float half_value(u16 bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}

#else

// Round to nearest even; a NaN becomes the canonical one.
GROUPED_HD u16 half_bits(float x) {
  const u32 bits = float_bits(x);
  const u32 magnitude = bits & 0x7FFFFFFFu;
  const u32 sign = (bits >> 16) & 0x8000u;
  if (magnitude > 0x7F800000u) return kNanHalfBits;
  if (magnitude >= 0x477FF000u) return static_cast<u16>(sign | 0x7C00u);  // 65520 and up: infinity
  if (magnitude < 0x38800000u) {                                          // below 2^-14: a subnormal half
    // Adding 1/2 leaves an ulp of 2^-24, the unit of half subnormals: the adder does the rounding.
    const float rounded = bits_float(magnitude) + 0.5f;
    return static_cast<u16>(sign | (float_bits(rounded) - 0x3F000000u));
  }
  const u32 rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return static_cast<u16>(sign | ((rounded - 0x38000000u) >> 13));
}

GROUPED_HD float half_value(u16 half) {
  const u32 sign = (half & 0x8000u) << 16;
  const u32 magnitude = half & 0x7FFFu;
  if (magnitude >= 0x7C00u) return bits_float(sign | 0x7F800000u | ((magnitude & 0x3FFu) << 13));
  // Moves the fields into place, then corrects the bias by an exact product; subnormals normalise on the way.
  const float scaled = bits_float(magnitude << 13) * bits_float(0x77800000u);  // 2^112
  return bits_float(sign | float_bits(scaled));
}

#endif

// A result: canonical NaN, and no negative zero.
GROUPED_HD u16 result_half_bits(float x) {
  if (is_nan(x)) return kNanHalfBits;
  const u16 bits = half_bits(x);
  return bits == 0x8000u ? u16(0) : bits;
}

}  // namespace grouped
