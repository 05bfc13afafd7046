// Keys and values on their way to shared memory, by asynchronous copies (sm_80 and later): a ring of chunks.
#pragma once

#include "cuda/ptx.cuh"
#include "cuda/table.cuh"

namespace grouped {

template <class L>
class Loader {
 public:
  __device__ Loader(const SplitArguments& a, const Block& block, Shared<L> shared)
      : a_(a), block_(block), shared_(shared), table_(a, block, shared) {}

  __device__ __forceinline__ void start() {
    table_.fill(kAhead + 1);
    __syncthreads();
#pragma unroll 1
    for (i32 chunk = 0; chunk < kAhead; ++chunk) copy(chunk);
  }

  // Before the barrier that opens round `chunk`: this thread's part of the chunk has arrived.
  __device__ __forceinline__ void wait() { wait_for_copies<kAhead - 1>(); }

  // After that barrier: the keys and values of two chunks ago are free.
  __device__ __forceinline__ void begin_round(i32 chunk) {
    copy(chunk + kAhead);
    table_.prefetch(chunk + kAhead + 1);
  }

  // After the barrier in the middle of the round.
  __device__ __forceinline__ void middle_of_round(i32 chunk) { table_.publish(chunk + kAhead + 1); }

  __device__ __forceinline__ const u8* keys(i32 chunk) const { return shared_.keys(chunk % L::stages); }
  __device__ __forceinline__ const u8* values(i32 chunk) const { return shared_.values(chunk % L::stages); }

 private:
  // Keys of this round, values of the last one, and these many chunks on their way.
  static constexpr i32 kAhead = L::stages - 2;
  static_assert(kAhead >= 1 && kAhead + 2 <= kTableChunks);

  // One group a chunk, empty past the last one, so that `wait` can count groups.
  __device__ __forceinline__ void copy(i32 chunk) {
    if (chunk < block_.chunks) {
      if (a_.wide_loads) {
        copy_chunk<16>(chunk);
      } else {
        copy_chunk<8>(chunk);
      }
    }
    commit_copies();
  }

  template <i32 Bytes>
  __device__ __forceinline__ void copy_chunk(i32 chunk) {
    const i32 tokens = table_.tokens(chunk);
    u8* const keys = shared_.keys(chunk % L::stages);
    u8* const values = shared_.values(chunk % L::stages);
#pragma unroll
    for (i32 index = 0; index < Pieces<L>::per_thread; ++index) {
      const i32 token = Pieces<L>::token(index), byte = Pieces<L>::byte(index);
      const HalfTile half = table_.entry(chunk, token / kHalfTokens);
      const i64 within = token % kHalfTokens;
      const i32 to = token * L::cache_stride + byte;
      const bool wanted = token < tokens;
      copy_piece<Bytes>(keys + to, a_.k, half.keys + within * a_.k_strides.token_bytes + byte, wanted);
      copy_piece<Bytes>(values + to, a_.v, half.values + within * a_.v_strides.token_bytes + byte, wanted);
    }
  }

  template <i32 Bytes>
  static __device__ __forceinline__ void copy_piece(u8* to, const u8* base, i64 offset, bool wanted) {
    const u8* const from = wanted ? base + offset : base;
#pragma unroll
    for (i32 part = 0; part < 16; part += Bytes) copy_async<Bytes>(to + part, from + part, wanted);
  }

  const SplitArguments& a_;
  const Block& block_;
  Shared<L> shared_;
  PageTable<L> table_;
};

}  // namespace grouped
