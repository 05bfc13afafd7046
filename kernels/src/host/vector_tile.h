// What the vectorised split keeps per tile, and how the caches' codes get there.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

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

// Eight codes as integers. (Compilers take a conversion of eight bytes apart, one by one.)
GROUPED_HD Ints widened(const u8* codes) {
#if defined(__AVX2__)
  return reinterpret_cast<Ints>(
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes))));
#else
  return __builtin_convertvector(load<FewCodes>(codes), Ints);
#endif
}

// 32 exponents as bytes, in order.
GROUPED_HD void store_narrowed(const Ints* exponents, i8* to) {
#if defined(__AVX2__)
  const __m256i* e = reinterpret_cast<const __m256i*>(exponents);
  const __m256i words = _mm256_packs_epi16(_mm256_packs_epi32(e[0], e[1]), _mm256_packs_epi32(e[2], e[3]));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  store(to, _mm256_permutevar8x32_epi32(words, order));
#else
  for (i32 i = 0; i < kBlock; ++i) to[i] = i8(exponents[i / kVectorLanes][i % kVectorLanes]);
#endif
}

// Eight codes as fp32 values and exponents, NaN codes as zeros and noted in `nans`.
GROUPED_HD Ints decode_vector(const u8* codes, float* value, Ints* nans) {
  const Ints code = widened(codes);
  const Ints magnitude = code & 127;
  const Ints subnormal = as_ints(__builtin_convertvector(magnitude, Floats) * 0x1p-9f);
  const Ints bits = magnitude < 8 ? subnormal : (magnitude << 20) + (120 << 23);
  const Ints finite = magnitude == 127 ? Ints{} : bits;
  store(value, finite | ((code & 128) << 24));
  *nans |= magnitude == 127;
  return finite == 0 ? Ints{} + kZeroExponent : (finite >> 23) - 127;
}

// One block of keys; the exponents in order, as they are read one by one.
GROUPED_HD void decode_keys(const u8* codes, float* value, i8* exponent, Ints* nans) {
  Ints exponents[kBlock / kVectorLanes];
  for (i32 v = 0; v < kBlock / kVectorLanes; ++v) {
    const i32 d = v * kVectorLanes;
    exponents[v] = decode_vector(codes + d, value + d, nans);
  }
  store_narrowed(exponents, exponent);
}

// One block of values; the exponents at their exponent_position.
GROUPED_HD void decode_values(const u8* codes, float* value, i8* exponent, Ints* nans) {
  Ints packed = {};
  for (i32 v = 0; v < kBlock / kVectorLanes; ++v) {
    const i32 d = v * kVectorLanes;
    packed |= (decode_vector(codes + d, value + d, nans) & 255) << (8 * v);
  }
  store(exponent, packed);
}

GROUPED_HD bool any(Ints mask) {
  i32 result = 0;
  for (i32 i = 0; i < kVectorLanes; ++i) result |= mask[i];
  return result != 0;
}

// The exponents of v / 2048 as halves: those below 2^-14 are subnormal.
GROUPED_HD void lower_exponents(const i8* exponent, i8* lowered) {
  const Bytes e = load<Bytes>(exponent);
  const Bytes low = e < i8(-3) ? Bytes{} + i8(-14) : e - i8(11);
  store(lowered, e == i8(kZeroExponent) ? e : low);
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

void decode_token(i32 head_dim, i32 i, Tile* tile) {
  const u8* k = tile->k_codes[i] ? tile->k_codes[i] : kZeroCodes;
  const u8* v = tile->v_codes[i] ? tile->v_codes[i] : kZeroCodes;
  Ints k_nans = {}, v_nans = {};
  for (i32 b = 0; b < head_dim / kBlock; ++b) {
    const i32 d = b * kBlock;
    decode_keys(k + d, &tile->k[i][d], &tile->k_exponent[i][d], &k_nans);
    decode_values(v + d, tile->v[b][i], tile->v_exponent[b][i], &v_nans);
    lower_exponents(tile->v_exponent[b][i], tile->v_low_exponent[b][i]);
  }
  tile->k_nan[i] = any(k_nans);
  tile->v_nan[i] = any(v_nans);
}

}  // namespace
}  // namespace GROUPED_ISA
}  // namespace grouped
