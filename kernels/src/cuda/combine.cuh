// The combine kernel: one block per packed row and 64 dimensions reads the active splits and writes fp16.
#pragma once

#include "cuda/block.cuh"
#include "grouped/combine.h"
#include "grouped/nan.h"

namespace grouped {

template <i32 Splits>
struct alignas(16) CombineMemory {
  float numerators[Splits][kCombineDims];
  float sums[Splits];
  float weights[Splits];
  float warp_max[kWarps];
};

__device__ __forceinline__ i32 longest_row(const CombineArguments& a) {
  i32 longest = 0;
  for (i32 row = 0; row < a.rows; ++row) longest = max(longest, live_length(a.row_lens[row], a.capacity));
  return longest;
}

// All threads: each split's numerators of the block's dimensions, four a thread.
template <i32 Splits>
__device__ __forceinline__ void read_numerators(CombineMemory<Splits>& memory, const float* from,
                                                i64 split_stride, i32 active) {
  constexpr i32 per_split = kCombineDims / 4, per_pass = kThreads / per_split;
  constexpr i32 passes = (Splits + per_pass - 1) / per_pass;
  const i32 thread = static_cast<i32>(threadIdx.x), dim = thread % per_split * 4;
  float4 parts[passes];
#pragma unroll
  for (i32 pass = 0; pass < passes; ++pass) {
    const i32 split = pass * per_pass + thread / per_split;
    if (split < active) parts[pass] = *reinterpret_cast<const float4*>(from + split * split_stride + dim);
  }
#pragma unroll
  for (i32 pass = 0; pass < passes; ++pass) {
    const i32 split = pass * per_pass + thread / per_split;
    if (split < active) *reinterpret_cast<float4*>(&memory.numerators[split][dim]) = parts[pass];
  }
}

__device__ __forceinline__ float warp_larger(float x) {
#pragma unroll
  for (i32 distance = 16; distance > 0; distance /= 2) {
    x = larger(x, __shfl_xor_sync(0xFFFFFFFFu, x, distance));
  }
  return x;
}

// All threads: every active split's sum and weight. The order of a maximum changes nothing.
template <i32 Splits>
__device__ __forceinline__ void read_weights(CombineMemory<Splits>& memory, const float* max_sum,
                                             i64 split_stride, i32 active) {
  static_assert(Splits <= kThreads);
  const i32 split = static_cast<i32>(threadIdx.x);
  float2 state = make_float2(negative_infinity(), 0.0f);
  if (split < active) state = *reinterpret_cast<const float2*>(max_sum + split * split_stride);
  const bool contributes = split_contributes(state.y);
  const float warps = warp_larger(contributes ? state.x : negative_infinity());
  if (split % 32 == 0) memory.warp_max[split / 32] = warps;
  __syncthreads();
  float row_max = memory.warp_max[0];
#pragma unroll
  for (i32 warp = 1; warp < kWarps; ++warp) row_max = larger(row_max, memory.warp_max[warp]);
  if (split >= active) return;
  memory.sums[split] = state.y;
  memory.weights[split] = contributes ? combine_weight(state.x, row_max) : 0.0f;
}

template <i32 Splits>
__device__ __forceinline__ Fraction add_splits(const CombineMemory<Splits>& memory, i32 dim, i32 active) {
  Fraction total{0.0f, 0.0f};
#pragma unroll 4
  for (i32 split = 0; split < active; ++split) {
    const float sum = memory.sums[split];
    if (!split_contributes(sum)) continue;
    total = combine_add(total, memory.numerators[split][dim], sum, memory.weights[split]);
  }
  return total;
}

template <i32 Heads, i32 HeadDim, i32 Splits>
__device__ __forceinline__ void run_combine(const CombineArguments& a) {
  __shared__ CombineMemory<Splits> memory;
  const i32 row = static_cast<i32>(blockIdx.x), first_dim = static_cast<i32>(blockIdx.y) * kCombineDims;
  const i32 dim = static_cast<i32>(threadIdx.x);
  u16* const out = a.out + row * HeadDim + first_dim;
  const i32 length = live_length(a.row_lens[row / Heads], a.capacity);
  if (length <= 0) {
    if (dim < kCombineDims) out[dim] = length == kOverCapacity ? kNanHalfBits : u16(0);
    return;
  }
  const i32 active = active_splits(longest_row(a), Splits);
  const i64 rows = static_cast<i64>(a.acc_rows) * Heads;  // of one split
  read_numerators<Splits>(memory, a.acc + row * HeadDim + first_dim, rows * HeadDim, active);
  read_weights<Splits>(memory, a.max_sum + 2 * row, 2 * rows, active);
  __syncthreads();
  if (dim < kCombineDims) out[dim] = combine_result(add_splits<Splits>(memory, dim, active));
}

}  // namespace grouped
