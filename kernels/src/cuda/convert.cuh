// E4M3 codes, several at a time, as fp16 operands of a tensor core. Every conversion is exact.
#pragma once

#include "cuda/ptx.cuh"

namespace grouped {

// A word of four codes, or the fp16 pairs of its low and high two.
struct HalfPairs {
  u32 low;
  u32 high;
};

// Bit 7 of each byte of the result is set where the code is NaN (0x7F or 0xFF).
__device__ __forceinline__ u32 nan_mask(u32 codes) {
  return ((codes & 0x7F7F7F7Fu) + 0x01010101u) & 0x80808080u;
}

#if GROUPED_SM >= 89

// NaN codes give NaN.
__device__ __forceinline__ HalfPairs key_halves(u32 codes) {
  return HalfPairs{convert_e4m3_pair(static_cast<u16>(codes)),
                   convert_e4m3_pair(static_cast<u16>(codes >> 16))};
}

// For codes without NaN.
__device__ __forceinline__ HalfPairs value_halves(u32 codes) { return key_halves(codes); }

#else

// With a code's exponent and mantissa at the top of the fp16 fields, the exponent's bias is 8 too large: the
// factor 2^8 puts that right, for subnormals too.
__device__ __forceinline__ u32 biased_pair(u32 spread) {
  return (spread & 0x80008000u) | ((spread >> 1) & 0x3F803F80u);
}

__device__ __forceinline__ HalfPairs value_halves(u32 codes) {
  const u32 low = biased_pair(__byte_perm(codes, 0u, 0x1404));
  const u32 high = biased_pair(__byte_perm(codes, 0u, 0x3424));
  return HalfPairs{multiply_halves(low, 0x5C005C00u), multiply_halves(high, 0x5C005C00u)};
}

__device__ __forceinline__ u32 with_nan(u32 pair, u32 low_mask, u32 high_mask) {
  return pair | (low_mask ? 0x7FFFu : 0u) | (high_mask ? 0x7FFF0000u : 0u);
}

__device__ __forceinline__ HalfPairs key_halves(u32 codes) {
  HalfPairs halves = value_halves(codes);
  const u32 nan = nan_mask(codes);
  if (nan) {
    halves.low = with_nan(halves.low, nan & 0x80u, nan & 0x8000u);
    halves.high = with_nan(halves.high, nan & 0x800000u, nan & 0x80000000u);
  }
  return halves;
}

#endif

// Values divided by 2048.
__device__ __forceinline__ HalfPairs residual_halves(HalfPairs values) {
  return HalfPairs{multiply_halves(values.low, 0x10001000u),
                   multiply_halves(values.high, 0x10001000u)};  // 2^-11
}

}  // namespace grouped
