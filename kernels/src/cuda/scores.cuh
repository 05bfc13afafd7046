// q times k for a chunk: fresh products of 16 dimensions, summed with compensation, into shared memory.
#pragma once

#include "cuda/block.cuh"
#include "grouped/kahan.h"

namespace grouped {

// All threads: the packed rows of q, those past the last one as zeros.
template <class L>
__device__ __forceinline__ void load_query(const SplitArguments& a, Shared<L> shared) {
  constexpr i32 pieces = L::head_dim / 8;
  for (i32 at = static_cast<i32>(threadIdx.x); at < L::rows * pieces; at += kThreads) {
    const i32 row = at / pieces, half = at % pieces * 8;
    u32 words[4] = {0u, 0u, 0u, 0u};
    if (row < a.rows * L::heads) {
      const u16* from = a.q + row * L::head_dim + half;
      if (a.wide_query) {
        const uint4 piece = *reinterpret_cast<const uint4*>(from);
        words[0] = piece.x, words[1] = piece.y, words[2] = piece.z, words[3] = piece.w;
      } else {
#pragma unroll
        for (i32 i = 0; i < 4; ++i) words[i] = from[2 * i] | static_cast<u32>(from[2 * i + 1]) << 16;
      }
    }
    *reinterpret_cast<uint4*>(shared.query() + row * L::query_stride + half) =
        make_uint4(words[0], words[1], words[2], words[3]);
  }
}

// How warps share the scores of a chunk: token groups first, then row tiles.
template <class L, class Mma>
struct ScoreShare {
  static constexpr i32 groups = kChunkTokens / Mma::columns;
  static constexpr i32 parts = kWarps / groups;
  static constexpr i32 tiles = (L::row_tiles + parts - 1) / parts;
  static constexpr i32 steps = L::head_dim / kStepLength;
  static_assert(groups * parts == kWarps);
};

// A warp's operands from q: as many steps as fit beside everything else are kept in registers, the others are
// read at each use.
template <class L, class Mma>
class Query {
  using Share = ScoreShare<L, Mma>;
  static constexpr i32 kBudget =
      L::sm < 80 || L::row_tiles > 2 ? 0 : 96;  // registers; the most that don't spill
  static constexpr i32 kPerStep = Share::tiles * static_cast<i32>(sizeof(typename Mma::Left)) / 4;
  static constexpr i32 kKept = kBudget / kPerStep < Share::steps ? kBudget / kPerStep : Share::steps;

 public:
  __device__ __forceinline__ Query(Shared<L> shared, i32 part, i32 lane)
      : rows_(shared.query() + part * kRowTile * L::query_stride), lane_(lane) {
#pragma unroll
    for (i32 step = 0; step < kKept; ++step) {
#pragma unroll
      for (i32 tile = 0; tile < Share::tiles; ++tile) kept_[step * Share::tiles + tile] = read(tile, step);
    }
  }

  // `tile` and `step` are constants once the loops around it are unrolled.
  __device__ __forceinline__ typename Mma::Left operand(i32 tile, i32 step) const {
    return step < kKept ? kept_[step * Share::tiles + tile] : read(tile, step);
  }

 private:
  __device__ __forceinline__ typename Mma::Left read(i32 tile, i32 step) const {
    return Mma::query(rows_ + tile * Share::parts * kRowTile * L::query_stride, L::query_stride, step, lane_);
  }

  const u16* rows_;
  i32 lane_;
  typename Mma::Left kept_[kKept > 0 ? kKept * Share::tiles : 1];
};

template <class L, class Mma>
__device__ __forceinline__ void compute_scores(const Query<L, Mma>& query, const u8* keys, Shared<L> shared,
                                               float scale, i32 tokens, i32 warp, i32 lane) {
  using Share = ScoreShare<L, Mma>;
  const i32 first = warp % Share::groups * Mma::columns, part = warp / Share::groups;
  if (first >= tokens) return;
  Kahan sums[Share::tiles][Mma::elements];
#pragma unroll
  for (i32 step = 0; step < Share::steps; ++step) {
    const typename Mma::Right right = Mma::keys(keys + first * L::cache_stride, L::cache_stride, step, lane);
#pragma unroll
    for (i32 tile = 0; tile < Share::tiles; ++tile) {
      if (part + tile * Share::parts >= L::row_tiles) continue;
      const typename Mma::Sum product =
          Mma::multiply_keys(query.operand(tile, step), right, typename Mma::Sum{});
#pragma unroll
      for (i32 i = 0; i < Mma::elements; ++i) {
        Kahan& sum = sums[tile][i];
        sum = step == 0 ? kahan_start(product.x[i]) : kahan_add(sum, product.x[i]);
      }
    }
  }
#pragma unroll
  for (i32 tile = 0; tile < Share::tiles; ++tile) {
    if (part + tile * Share::parts >= L::row_tiles) continue;
    const i32 row = (part + tile * Share::parts) * kRowTile;
#pragma unroll
    for (i32 i = 0; i < Mma::elements; i += 2) {
      float* to =
          shared.scores() + (row + Mma::row(lane, i)) * L::score_stride + first + Mma::column(lane, i);
      *reinterpret_cast<float2*>(to) =
          make_float2(scaled_score(sums[tile][i], scale), scaled_score(sums[tile][i + 1], scale));
    }
  }
}

}  // namespace grouped
