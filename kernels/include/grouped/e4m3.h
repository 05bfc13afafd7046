// E4M3FN codes: sign, 4 exponent bits (bias 7), 3 mantissa bits; 0x7F and 0xFF are NaN, there is no infinity.
#pragma once

#include "grouped/platform.h"

namespace grouped {

GROUPED_HD bool e4m3_is_nan(u8 code) { return (code & 0x7Fu) == 0x7Fu; }

// The fp16 bits of a code: always exact. NaN gives NaN.
GROUPED_HD u16 e4m3_half_bits(u8 code) {
  const u32 sign = (code & 0x80u) << 8;
  const u32 magnitude = code & 0x7Fu;
  if (magnitude == 0x7Fu) return static_cast<u16>(sign | 0x7FFFu);
  if (magnitude >= 8u) return static_cast<u16>(sign | ((magnitude << 7) + 0x2000u));
  // Subnormal codes are magnitude * 2^-9; as halves they are normal.
  if (magnitude == 0u) return static_cast<u16>(sign);
  const u32 shift = magnitude >= 4u ? 0u : magnitude >= 2u ? 1u : 2u;
  const u32 mantissa = ((magnitude << shift) & 3u) << 8;
  return static_cast<u16>(sign | ((8u - shift) << 10) | mantissa);
}

// The fp16 bits of code / 2048, exact for every finite code (fp16 subnormals included); NaN gives +0.
GROUPED_HD u16 e4m3_residual_half_bits(u8 code) {
  const u32 sign = (code & 0x80u) << 8;
  const u32 magnitude = code & 0x7Fu;
  if (magnitude == 0x7Fu) return 0;
  if (magnitude < 8u) return static_cast<u16>(sign | (magnitude << 4));  // magnitude * 2^-20
  const u32 exponent = magnitude >> 3;                                   // value = 1.m * 2^(exponent - 7)
  const u32 significand = 8u | (magnitude & 7u);  // value = significand * 2^(exponent - 10)
  if (exponent < 4u) return static_cast<u16>(sign | (significand << (exponent + 3u)));
  return static_cast<u16>(sign | ((exponent - 3u) << 10) | ((magnitude & 7u) << 7));
}

// As a P.V operand: NaN codes count as +0.
GROUPED_HD u16 e4m3_value_half_bits(u8 code) { return e4m3_is_nan(code) ? u16(0) : e4m3_half_bits(code); }

}  // namespace grouped
