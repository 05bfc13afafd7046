// The split kernel: one block per split turns its tiles into (numerator, max, sum) of every packed row.
//
// A chunk takes two rounds: its scores and softmax in one, its values in the next, beside the scores of the
// chunk after it. So there are two barriers a chunk, and tensor-core work always has company.
#pragma once

#include "cuda/block.cuh"
#include "cuda/scores.cuh"
#include "cuda/softmax.cuh"
#include "cuda/values.cuh"

#if GROUPED_SM >= 80
#include "cuda/loader_async.cuh"
#include "cuda/mma_m16n8k16.cuh"
#else
#include "cuda/loader_registers.cuh"
#include "cuda/mma_m8n8k4.cuh"
#endif

namespace grouped {

#if GROUPED_SM >= 80
using Mma = MmaM16N8K16;
#else
using Mma = MmaM8N8K4;
#endif

template <class L>
__device__ __forceinline__ void load_lengths(const SplitArguments& a, Shared<L> shared) {
  const i32 row = static_cast<i32>(threadIdx.x);
  if (row >= L::rows) return;
  const i32 query = row / L::heads;
  shared.lengths()[row] = query < a.rows ? live_length(a.row_lens[query], a.capacity) : 0;
}

// The state of a split without tiles: empty, and NaN for rows over capacity.
template <class L>
__device__ __forceinline__ void write_empty(const SplitArguments& a, const Block& block) {
  const i32 rows = a.rows * L::heads;
  const i64 first = static_cast<i64>(block.split) * a.acc_rows * L::heads;
  for (i32 at = static_cast<i32>(threadIdx.x); at < rows * L::head_dim; at += kThreads) {
    const i32 row = at / L::head_dim;
    const bool over = live_length(a.row_lens[row / L::heads], a.capacity) == kOverCapacity;
    a.acc[first * L::head_dim + at] = over ? nan_value() : 0.0f;
    if (at % L::head_dim != 0) continue;
    a.max_sum[2 * (first + row)] = over ? nan_value() : negative_infinity();
    a.max_sum[2 * (first + row) + 1] = over ? nan_value() : 0.0f;
  }
}

template <class L>
__device__ __forceinline__ void run_split(const SplitArguments& a, u8* memory) {
  const Shared<L> shared{memory};
  const Block block = plan_block<Arch<L::sm>::splits>(a);
  if (!block.active) {
    if (a.write_unused) write_empty<L>(a, block);
    return;
  }
  const i32 warp = static_cast<i32>(threadIdx.x) / 32, lane = static_cast<i32>(threadIdx.x) % 32;

  Loader<L> loader(a, block, shared);
  loader.start();
  load_query<L>(a, shared);
  load_lengths<L>(a, shared);
  __syncthreads();

  const Query<L, Mma> query(shared, warp / ScoreShare<L, Mma>::groups, lane);
  Numerators<L, Mma> numerators(shared, warp, lane);
  Softmax<L> softmax;
#pragma unroll 1
  for (i32 chunk = 0; chunk <= block.chunks; ++chunk) {
    loader.wait();
    __syncthreads();
    loader.begin_round(chunk);
    if (chunk < block.chunks) {
      const i32 tokens = block.end - block.begin - chunk * kChunkTokens;
      compute_scores<L, Mma>(query, loader.keys(chunk), shared, a.score_scale, tokens, warp, lane);
    }
    if (chunk > 0) numerators.update(loader.values(chunk - 1), block, chunk - 1);
    __syncthreads();
    loader.middle_of_round(chunk);
    if (chunk < block.chunks) softmax.update(shared, block, chunk);
  }
  numerators.write(a, block);
  softmax.write(a, block, shared);
}

}  // namespace grouped
