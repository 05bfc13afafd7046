// Keys and values on their way to shared memory, through registers (before sm_80). Keys run one chunk ahead
// of values: a round works on the keys of its own chunk and the values of the one before.
#pragma once

#include "cuda/table.cuh"

namespace grouped {

template <class L>
class Loader {
 public:
  __device__ Loader(const SplitArguments& a, const Block& block, Shared<L> shared)
      : a_(a), block_(block), shared_(shared), table_(a, block, shared) {}

  __device__ __forceinline__ void start() {
    table_.fill(kAhead);
    __syncthreads();
    fetch_keys(0);
    store(shared_.keys(0), keys_, 0);
    fetch_keys(1);
    fetch_values(0);
  }

  __device__ __forceinline__ void wait() {}

  __device__ __forceinline__ void begin_round(i32 chunk) { table_.prefetch(chunk + kAhead); }

  // The round's keys and the last round's values have been used.
  __device__ __forceinline__ void middle_of_round(i32 chunk) {
    store(shared_.keys(0), keys_, chunk + 1);
    store(shared_.values(0), values_, chunk);
    fetch_keys(chunk + 2);
    fetch_values(chunk + 1);
    table_.publish(chunk + kAhead);
  }

  __device__ __forceinline__ const u8* keys(i32) const { return shared_.keys(0); }
  __device__ __forceinline__ const u8* values(i32) const { return shared_.values(0); }

 private:
  static constexpr i32 kAhead = 3;
  static_assert(kAhead + 1 <= kTableChunks);

  __device__ __forceinline__ void fetch_keys(i32 chunk) {
    fetch(keys_, chunk, a_.k, a_.k_strides.token_bytes, &HalfTile::keys);
  }
  __device__ __forceinline__ void fetch_values(i32 chunk) {
    fetch(values_, chunk, a_.v, a_.v_strides.token_bytes, &HalfTile::values);
  }

  __device__ __forceinline__ void fetch(uint4 (&pieces)[Pieces<L>::per_thread], i32 chunk, const u8* base,
                                        i64 token_bytes, i64 HalfTile::* offset) {
    if (chunk >= block_.chunks) return;
    const i32 tokens = table_.tokens(chunk);
#pragma unroll
    for (i32 index = 0; index < Pieces<L>::per_thread; ++index) {
      const i32 token = Pieces<L>::token(index);
      const HalfTile half = table_.entry(chunk, token / kHalfTokens);
      const i64 within = token % kHalfTokens;
      const u8* from = base + half.*offset + within * token_bytes + Pieces<L>::byte(index);
      pieces[index] = token < tokens ? read(from) : make_uint4(0u, 0u, 0u, 0u);
    }
  }

  __device__ __forceinline__ uint4 read(const u8* from) const {
    if (a_.wide_loads) return *reinterpret_cast<const uint4*>(from);
    const uint2 first = *reinterpret_cast<const uint2*>(from);
    const uint2 second = *reinterpret_cast<const uint2*>(from + 8);
    return make_uint4(first.x, first.y, second.x, second.y);
  }

  __device__ __forceinline__ void store(u8* to, const uint4 (&pieces)[Pieces<L>::per_thread],
                                        i32 chunk) const {
    if (chunk >= block_.chunks) return;
#pragma unroll
    for (i32 index = 0; index < Pieces<L>::per_thread; ++index) {
      const i32 at = Pieces<L>::token(index) * L::cache_stride + Pieces<L>::byte(index);
      *reinterpret_cast<uint4*>(to + at) = pieces[index];
    }
  }

  const SplitArguments& a_;
  const Block& block_;
  Shared<L> shared_;
  PageTable<L> table_;
  uint4 keys_[Pieces<L>::per_thread];
  uint4 values_[Pieces<L>::per_thread];
};

}  // namespace grouped
