// p times v for a chunk's tiles, and the numerators. A warp owns 32 dimensions of some row tiles for the
// whole split, so that neither the numerators nor the codes' NaNs have to be shared.
#pragma once

#include "cuda/block.cuh"
#include "cuda/convert.cuh"
#include "grouped/partial.h"

namespace grouped {

constexpr i32 kSlabDims = 32;
constexpr i32 kNoToken = 0x7FFFFFFF;

template <class L, class Mma>
class Numerators {
  static constexpr i32 kSlabs = L::head_dim / kSlabDims;
  static constexpr i32 kParts = kWarps / kSlabs;  // warps that share a slab, by row tiles
  static constexpr i32 kTiles = (L::row_tiles + kParts - 1) / kParts;
  using Sum = typename Mma::Sum;

 public:
  __device__ __forceinline__ Numerators(Shared<L> shared, i32 warp, i32 lane)
      : shared_(shared),
        lane_(lane),
        slab_(warp % kSlabs * kSlabDims),
        part_(warp / kSlabs),
        first_nan_(shared.template at<i32>(L::first_nan) + warp * kSlabDims) {
    first_nan_[lane] = kNoToken;
    __syncwarp();
#pragma unroll
    for (i32 tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (i32 at = 0; at < Mma::value_blocks; ++at) state_[tile][at] = Sum{};
    }
  }

  __device__ __forceinline__ void update(const u8* values, const Block& block, i32 chunk) {
    if (part_ >= L::row_tiles) return;
#pragma unroll 1
    for (i32 half = 0; half < 2; ++half) {
      const i32 start = block.begin + chunk * kChunkTokens + half * kTileTokens;
      if (start < block.end) update_tile(values + half * kTileTokens * L::cache_stride, block, start, half);
    }
  }

  __device__ __forceinline__ void write(const SplitArguments& a, const Block& block) const {
    if (part_ >= L::row_tiles) return;
#pragma unroll
    for (i32 tile = 0; tile < kTiles; ++tile) {
      if (part_ + tile * kParts >= L::row_tiles) continue;
      Mma::store(state_[tile], lane_,
                 [&](i32 row, i32 dim, auto x) { write_some(a, block, tile, row, dim, x); });
    }
  }

 private:
  __device__ __forceinline__ i32 first_row(i32 tile) const { return (part_ + tile * kParts) * kRowTile; }

  __device__ __forceinline__ void update_tile(const u8* tokens, const Block& block, i32 start, i32 half) {
    Sum sums[kTiles][Mma::value_blocks] = {};
    bool has_nan = false;
#pragma unroll
    for (i32 step = 0; step < kTileTokens / kStepLength; ++step) {
      u32 words[Mma::value_words];
      read_words(tokens + step * kStepLength * L::cache_stride, words);
      has_nan |= take_nans(words, start + step * kStepLength);
      const typename Mma::Values right = Mma::values(words);
#pragma unroll
      for (i32 tile = 0; tile < kTiles; ++tile) {
        if (part_ + tile * kParts >= L::row_tiles) continue;
        multiply_step(sums[tile], right, tile, half * 2 + step);
      }
    }
    rescale(sums, block, start, half);
    if (__any_sync(0xFFFFFFFFu, has_nan)) poison();
  }

  __device__ __forceinline__ void read_words(const u8* tokens, u32 (&words)[Mma::value_words]) const {
#pragma unroll
    for (i32 i = 0; i < Mma::value_words; ++i) {
      const i32 at = Mma::value_token(lane_, i) * L::cache_stride + slab_ + Mma::value_dim(lane_, i);
      words[i] = *reinterpret_cast<const u32*>(tokens + at);
    }
  }

  // High halves first: their order is part of the arithmetic.
  __device__ __forceinline__ void multiply_step(Sum (&sums)[Mma::value_blocks],
                                                const typename Mma::Values& right, i32 tile, i32 step) const {
    const i32 rows = first_row(tile) * L::probability_stride;
    const typename Mma::Left high =
        Mma::probabilities(shared_.high() + rows, L::probability_stride, step, lane_);
    const typename Mma::Left low =
        Mma::probabilities(shared_.low() + rows, L::probability_stride, step, lane_);
#pragma unroll
    for (i32 at = 0; at < Mma::value_blocks; ++at) sums[at] = Mma::multiply(high, right.high[at], sums[at]);
#pragma unroll
    for (i32 at = 0; at < Mma::value_blocks; ++at) sums[at] = Mma::multiply(low, right.low[at], sums[at]);
  }

  // The first tile starts from +0 with a factor of 1 (see Softmax). A row that ended before this tile keeps
  // its bits; adding the tile's +0 could turn a -0 into +0.
  __device__ __forceinline__ void rescale(const Sum (&sums)[kTiles][Mma::value_blocks], const Block& block,
                                          i32 start, i32 half) {
    const bool ragged = start >= block.shortest;
    const float* factors = shared_.factors() + half * L::rows;
#pragma unroll
    for (i32 tile = 0; tile < kTiles; ++tile) {
      if (part_ + tile * kParts >= L::row_tiles) continue;
#pragma unroll
      for (i32 i = 0; i < Mma::elements; ++i) {
        const i32 row = first_row(tile) + Mma::row(lane_, i);
        if (ragged && shared_.lengths()[row] <= start) continue;
        const float factor = factors[row];
#pragma unroll
        for (i32 at = 0; at < Mma::value_blocks; ++at) {
          float& x = state_[tile][at].x[i];
          x = fma(x, factor, sums[tile][at].x[i]);
        }
      }
    }
  }

  // NaN codes become +0 in the operand; the first token that has one is kept for each dimension.
  __device__ __forceinline__ bool take_nans(u32 (&words)[Mma::value_words], i32 token) const {
    u32 any = 0;
#pragma unroll
    for (i32 i = 0; i < Mma::value_words; ++i) any |= (words[i] & 0x7F7F7F7Fu) + 0x01010101u;
    if ((any & 0x80808080u) == 0) return false;
#pragma unroll
    for (i32 i = 0; i < Mma::value_words; ++i) {
      const u32 mask = nan_mask(words[i]);
      words[i] &= ~(mask | (mask - (mask >> 7)));  // whole bytes
      for (i32 byte = 0; byte < 4; ++byte) {
        if (mask & (0x80u << 8 * byte)) {
          atomicMin(first_nan_ + Mma::value_dim(lane_, i) + byte, token + Mma::value_token(lane_, i));
        }
      }
    }
    return true;
  }

  // The rows for which such a token is live lose its dimension, for good.
  __device__ __forceinline__ void poison() {
    __syncwarp();
#pragma unroll
    for (i32 tile = 0; tile < kTiles; ++tile) {
      if (part_ + tile * kParts >= L::row_tiles) continue;
#pragma unroll
      for (i32 i = 0; i < Mma::elements; ++i) {
        const i32 length = shared_.lengths()[first_row(tile) + Mma::row(lane_, i)];
#pragma unroll
        for (i32 at = 0; at < Mma::value_blocks; ++at) {
          if (length > first_nan_[Mma::sum_dim(lane_, at, i)]) state_[tile][at].x[i] = nan_value();
        }
      }
    }
    __syncwarp();
    first_nan_[lane_] = kNoToken;
    __syncwarp();
  }

  template <typename Vector>
  __device__ __forceinline__ void write_some(const SplitArguments& a, const Block& block, i32 tile, i32 row,
                                             i32 dim, Vector x) const {
    const i32 packed = first_row(tile) + row;
    if (packed >= a.rows * L::heads) return;
    const bool over = shared_.lengths()[packed] == kOverCapacity;
    const i64 at = static_cast<i64>(block.split) * a.acc_rows * L::heads + packed;
    float* const elements = reinterpret_cast<float*>(&x);
#pragma unroll
    for (u32 i = 0; i < sizeof(Vector) / 4; ++i) {
      elements[i] = over ? nan_value() : stored_numerator(elements[i], a.v_scale);
    }
    *reinterpret_cast<Vector*>(a.acc + at * L::head_dim + slab_ + dim) = x;
  }

  Shared<L> shared_;
  i32 lane_;
  i32 slab_;
  i32 part_;
  i32* first_nan_;
  Sum state_[kTiles][Mma::value_blocks];
};

}  // namespace grouped
