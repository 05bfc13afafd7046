// Where the tokens of a chunk are: one look-up for each 16 of them, made a chunk ahead of its use.
#pragma once

#include "cuda/block.cuh"

namespace grouped {

struct HalfTile {
  i64 keys;  // bytes from the cache's base to the first of 16 tokens
  i64 values;
};

template <class L>
class PageTable {
 public:
  __device__ PageTable(const SplitArguments& a, const Block& block, Shared<L> shared)
      : a_(a), block_(block), entries_(shared.template at<HalfTile>(L::table)) {}

  // By all threads, before the first barrier.
  __device__ __forceinline__ void fill(i32 chunks) {
    const i32 thread = static_cast<i32>(threadIdx.x);
    if (thread >= chunks * kChunkHalves) return;
    look_up(thread / kChunkHalves, thread % kChunkHalves);
    write(thread / kChunkHalves, thread % kChunkHalves);
  }

  // The block-table read of `chunk`, whose latency then passes behind other work until `publish`.
  __device__ __forceinline__ void prefetch(i32 chunk) {
    if (threadIdx.x < kChunkHalves) look_up(chunk, static_cast<i32>(threadIdx.x));
  }
  __device__ __forceinline__ void publish(i32 chunk) {
    if (threadIdx.x < kChunkHalves) write(chunk, static_cast<i32>(threadIdx.x));
  }

  __device__ __forceinline__ HalfTile entry(i32 chunk, i32 half) const {
    return entries_[(chunk % kTableChunks) * kChunkHalves + half];
  }

  // Tokens of `chunk` that exist for this block.
  __device__ __forceinline__ i32 tokens(i32 chunk) const {
    return min(kChunkTokens, block_.end - block_.begin - chunk * kChunkTokens);
  }

 private:
  // Entries beyond the block's last token may hold anything and are never read.
  __device__ __forceinline__ void look_up(i32 chunk, i32 half) {
    const i32 token = block_.begin + chunk * kChunkTokens + half * kHalfTokens;
    const bool wanted = token < block_.end;
    page_ = wanted ? a_.block_table[token / a_.page] : 0;
    offset_ = wanted ? token % a_.page : 0;
  }
  __device__ __forceinline__ void write(i32 chunk, i32 half) {
    entries_[(chunk % kTableChunks) * kChunkHalves + half] =
        HalfTile{offset(a_.k_strides), offset(a_.v_strides)};
  }
  __device__ __forceinline__ i64 offset(CacheStrides strides) const {
    return page_ * strides.block_bytes + offset_ * strides.token_bytes;
  }

  const SplitArguments& a_;
  const Block& block_;
  HalfTile* entries_;
  i64 page_ = 0;
  i64 offset_ = 0;
};

// How the block's threads share the 16-byte pieces of a chunk's keys or values.
template <class L>
struct Pieces {
  static constexpr i32 per_token = L::head_dim / 16;
  static constexpr i32 per_thread = kChunkTokens * per_token / kThreads;

  static __device__ __forceinline__ i32 token(i32 index) {
    return (index * kThreads + static_cast<i32>(threadIdx.x)) / per_token;
  }
  static __device__ __forceinline__ i32 byte(i32 index) {
    return (index * kThreads + static_cast<i32>(threadIdx.x)) % per_token * 16;
  }
};

}  // namespace grouped
