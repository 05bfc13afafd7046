// What the vectorised split keeps per tile, and how the caches' codes get there.
#pragma once

#include "grouped/e4m3.h"
#include "grouped/pages.h"
#include "host/vector_product.h"

namespace grouped {
namespace GROUPED_ISA {
namespace {

constexpr i32 kBlocks = kMaxHeadDim / kBlock;
constexpr i32 kMaxSteps = kMaxHeadDim / kStepLength;
constexpr i32 kBatch = 4;  // tokens whose products are kept until they are summed

struct alignas(64) Tile {
  i32 first_token;
  bool first;                      // the split's first tile
  const u8* k_codes[kTileTokens];  // null at and past the longest row
  const u8* v_codes[kTileTokens];
  bool k_nan[kTileTokens];  // the token holds a NaN code
  bool v_nan[kTileTokens];
  alignas(64) float k[kTileTokens][kMaxHeadDim];  // NaN codes are 0 here and in v
  i8 k_exponent[kTileTokens][kMaxHeadDim];
  float v[kBlocks][kTileTokens][kBlock];
  i8 v_exponent[kBlocks][kTileTokens][kBlock];
  i8 v_low_exponent[kBlocks][kTileTokens][kBlock];  // of v / 2048 as a half
};

// One value per lane; all loops over lanes run to `width`, the lanes rounded up to whole vectors.
struct alignas(64) Softmax {
  i32 width;
  float max[kMaxLanes];
  float sum[kMaxLanes];
  float rescale[kMaxLanes];
  float tile_sum[kMaxLanes];
  float score[kTileTokens][kMaxLanes];  // then the probabilities
  float tree[kTileTokens][kMaxLanes];
  float high[kTileTokens][kMaxLanes];
  float low[kTileTokens][kMaxLanes];  // already divided by 2048, as if v were not
  i8 high_exponent[kTileTokens][kMaxLanes];
  i8 low_exponent[kTileTokens][kMaxLanes];  // of the half, before that division
};

struct alignas(64) Working {
  Tile tile;
  Softmax softmax;
  float products[kBatch][kMaxSteps][kMaxLanes];
  float values[kMaxLanes][kBlock];  // one block of the tile's P.V
};
static_assert(sizeof(Working) <= sizeof(Scratch), "raise Scratch");

GROUPED_HD i32 normal_exponent(u32 magnitude_bits) {
  return magnitude_bits == 0 ? kZeroExponent : i32(magnitude_bits >> 23) - 127;
}

// The fp32 bits of |code|; 0 for NaN.
GROUPED_HD u32 code_magnitude(u32 code) {
  const u32 magnitude = code & 0x7Fu;
  const u32 subnormal = float_bits(float(i32(magnitude)) * 0x1p-9f);
  const u32 normal = (magnitude << 20) + (120u << 23);
  return magnitude == 0x7Fu ? 0u : magnitude < 8u ? subnormal : normal;
}

GROUPED_HD bool decode_keys(const u8* codes, i32 count, float* value, i8* exponent) {
  u32 nans = 0;
  for (i32 d = 0; d < count; ++d) {
    const u32 code = codes[d], magnitude = code_magnitude(code);
    value[d] = bits_float(((code & 0x80u) << 24) | magnitude);
    exponent[d] = i8(normal_exponent(magnitude));
    nans |= (code & 0x7Fu) == 0x7Fu ? 1u : 0u;
  }
  return nans != 0;
}

GROUPED_HD bool decode_values(const u8* codes, float* value, i8* exponent, i8* low_exponent) {
  const bool nans = decode_keys(codes, kBlock, value, exponent);
  for (i32 d = 0; d < kBlock; ++d) {
    const i32 lowered = exponent[d] - 11 < -14 ? -14 : exponent[d] - 11;
    low_exponent[d] = i8(exponent[d] == kZeroExponent ? kZeroExponent : lowered);
  }
  return nans;
}

const u8 kZeroCodes[kMaxHeadDim] = {};

void locate(const Call& call, i32 index, bool first, Tile* tile) {
  const Problem& p = call.problem;
  tile->first_token = index * kTileTokens;
  tile->first = first;
  for (i32 i = 0; i < kTileTokens; ++i) {
    const i32 token = tile->first_token + i;
    const bool inside = token < call.longest;
    tile->k_codes[i] = inside ? p.k + token_offset(p.block_table, p.page, p.k_strides, token) : nullptr;
    tile->v_codes[i] = inside ? p.v + token_offset(p.block_table, p.page, p.v_strides, token) : nullptr;
  }
}

void decode(const Call& call, Tile* tile) {
  const i32 head_dim = call.problem.head_dim;
  for (i32 i = 0; i < kTileTokens; ++i) {
    const u8* k = tile->k_codes[i] ? tile->k_codes[i] : kZeroCodes;
    const u8* v = tile->v_codes[i] ? tile->v_codes[i] : kZeroCodes;
    tile->k_nan[i] = decode_keys(k, head_dim, tile->k[i], tile->k_exponent[i]);
    tile->v_nan[i] = false;
    for (i32 b = 0; b < head_dim / kBlock; ++b) {
      const bool nan =
          decode_values(v + b * kBlock, tile->v[b][i], tile->v_exponent[b][i], tile->v_low_exponent[b][i]);
      tile->v_nan[i] = tile->v_nan[i] || nan;
    }
  }
}

}  // namespace
}  // namespace GROUPED_ISA
}  // namespace grouped
