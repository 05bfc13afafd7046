// The online softmax of a chunk's two tiles. Eight lanes work on a row, four on each tile, eight tokens a
// lane: the first three strides of the sum's tree are inside a lane, the last two between neighbours.
#pragma once

#include "cuda/block.cuh"
#include "grouped/partial.h"

namespace grouped {

__device__ __forceinline__ float from_lane(float x, i32 distance) {
  return __shfl_xor_sync(0xFFFFFFFFu, x, distance);
}

template <class L>
class Softmax {
 public:
  __device__ __forceinline__ Softmax() {
#pragma unroll
    for (i32 pass = 0; pass < kPasses; ++pass) states_[pass] = empty_softmax();
  }

  __device__ __forceinline__ void update(Shared<L> shared, const Block& block, i32 chunk) {
#pragma unroll
    for (i32 pass = 0; pass < kPasses; ++pass) {
      if (row(pass) < L::rows) states_[pass] = update_row(shared, block, chunk, row(pass), states_[pass]);
    }
  }

  __device__ __forceinline__ void write(const SplitArguments& a, const Block& block, Shared<L> shared) const {
#pragma unroll
    for (i32 pass = 0; pass < kPasses; ++pass) {
      if (part() != 0 || row(pass) >= a.rows * L::heads) continue;
      const bool over = shared.lengths()[row(pass)] == kOverCapacity;
      const i64 at = static_cast<i64>(block.split) * a.acc_rows * L::heads + row(pass);
      reinterpret_cast<float2*>(a.max_sum)[at] =
          over ? make_float2(nan_value(), nan_value()) : make_float2(states_[pass].max, states_[pass].sum);
    }
  }

 private:
  static constexpr i32 kRowsPerPass = kThreads / 8;
  static constexpr i32 kPasses = (L::rows + kRowsPerPass - 1) / kRowsPerPass;
  static constexpr i32 kTokens = 8;  // of a lane

  static __device__ __forceinline__ i32 part() { return static_cast<i32>(threadIdx.x) % 8; }
  // Whole warps have a row, or have none: rows are a multiple of 16.
  static __device__ __forceinline__ i32 row(i32 pass) {
    return pass * kRowsPerPass + static_cast<i32>(threadIdx.x) / 8;
  }

  static __device__ __forceinline__ SoftmaxState update_row(Shared<L> shared, const Block& block, i32 chunk,
                                                            i32 row, SoftmaxState state) {
    const i32 start = block.begin + chunk * kChunkTokens;
    const i32 length = min(shared.lengths()[row], block.end);
    const i32 live = length - start - part() * kTokens;  // live tokens from the lane's first one on
    const bool first = chunk == 0, live0 = length > start, live1 = length > start + kTileTokens;
    const bool second = part() >= 4;

    float score[kTokens];
    read_scores(shared.scores() + row * L::score_stride + part() * kTokens, score);
    const float mine = tile_max(score, live), others = from_lane(mine, 4);
    const float old = state.max;
    const float max0 = live0 ? next_max(first, old, second ? others : mine) : old;
    const float max1 = live1 ? larger(max0, second ? mine : others) : max0;
    // A row's first tile starts from numerators of +0, which any factor keeps: fma(0, 1, x) is x, since no
    // accumulator is -0.
    const float factor0 = live0 && !first ? rescale_factor(old, max0) : 1.0f;
    const float factor1 = live1 ? rescale_factor(max0, max1) : 1.0f;

    float p[kTokens];
#pragma unroll
    for (i32 i = 0; i < kTokens; ++i) p[i] = probability(i < live, score[i], second ? max1 : max0);
    write_probabilities(shared, row, p);
    if (part() == 0) {
      shared.factors()[row] = factor0;
      shared.factors()[L::rows + row] = factor1;
    }
    const float my_sum = tile_sum(p), other_sum = from_lane(my_sum, 4);
    const float sum0 = live0 ? next_sum(first, state.sum, factor0, second ? other_sum : my_sum) : state.sum;
    const float sum1 = live1 ? next_sum(false, sum0, factor1, second ? my_sum : other_sum) : sum0;
    return SoftmaxState{max1, sum1};
  }

  static __device__ __forceinline__ void read_scores(const float* from, float (&score)[kTokens]) {
#pragma unroll
    for (i32 i = 0; i < kTokens; i += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + i);
      score[i] = four.x, score[i + 1] = four.y, score[i + 2] = four.z, score[i + 3] = four.w;
    }
  }

  static __device__ __forceinline__ float tile_max(const float (&score)[kTokens], i32 live) {
    float result = negative_infinity();
#pragma unroll
    for (i32 i = 0; i < kTokens; ++i) result = larger(result, i < live ? score[i] : negative_infinity());
    result = larger(result, from_lane(result, 1));
    return larger(result, from_lane(result, 2));
  }

  static __device__ __forceinline__ float tile_sum(const float (&p)[kTokens]) {
    const float low = add(add(p[0], p[1]), add(p[2], p[3]));
    const float high = add(add(p[4], p[5]), add(p[6], p[7]));
    float sum = add(low, high);
    sum = add(sum, from_lane(sum, 1));
    return add(sum, from_lane(sum, 2));
  }

  static __device__ __forceinline__ void write_probabilities(Shared<L> shared, i32 row,
                                                             const float (&p)[kTokens]) {
    u32 high[4], low[4];
#pragma unroll
    for (i32 i = 0; i < 4; ++i) {
      const u16 first = probability_high(p[2 * i]), second = probability_high(p[2 * i + 1]);
      high[i] = first | static_cast<u32>(second) << 16;
      low[i] = probability_low(p[2 * i], first) | static_cast<u32>(probability_low(p[2 * i + 1], second))
                                                      << 16;
    }
    const i32 at = row * L::probability_stride + part() * kTokens;
    *reinterpret_cast<uint4*>(shared.high() + at) = make_uint4(high[0], high[1], high[2], high[3]);
    *reinterpret_cast<uint4*>(shared.low() + at) = make_uint4(low[0], low[1], low[2], low[3]);
  }

  SoftmaxState states_[kPasses];
};

}  // namespace grouped
