// What a block of the split kernel works on, derived from the lengths on the device.
#pragma once

#include "cuda/layout.h"
#include "grouped/schedule.h"

namespace grouped {

constexpr i32 kOverCapacity = -1;  // stored as the length of such a row; like 0, it never has a live token

struct Block {
  i32 split;
  bool active;
  i32 begin;     // first token; a multiple of 32
  i32 end;       // one past the last token with a live row: later ones count as zeros
  i32 chunks;    // of 64 tokens
  i32 shortest;  // shortest live row: tiles that start before it have every live row alive
};

__device__ __forceinline__ i32 live_length(i32 length, i32 capacity) {
  if (length > capacity) return kOverCapacity;
  return length > 0 ? length : 0;
}

template <i32 Splits>
__device__ __forceinline__ Block plan_block(const SplitArguments& a) {
  i32 longest = 0, shortest = a.capacity;
  for (i32 row = 0; row < a.rows; ++row) {
    const i32 length = live_length(a.row_lens[row], a.capacity);
    longest = max(longest, length);
    if (length > 0) shortest = min(shortest, length);
  }
  const i32 split = static_cast<i32>(blockIdx.x);
  const TileRange tiles = split_tiles(longest, Splits, split);
  const i32 begin = tiles.begin * kTileTokens;
  const i32 end = min(longest, tiles.end * kTileTokens);
  const i32 chunks = end > begin ? (end - begin + kChunkTokens - 1) / kChunkTokens : 0;
  return Block{split, split < active_splits(longest, Splits), begin, end, chunks, shortest};
}

// Views into the block's shared memory.
template <class L>
struct Shared {
  u8* base;

  template <typename T>
  __device__ __forceinline__ T* at(i32 offset) const {
    return reinterpret_cast<T*>(base + offset);
  }
  __device__ u8* keys(i32 stage) const { return base + L::keys + stage * L::cache_bytes; }
  __device__ u8* values(i32 stage) const { return base + L::values + stage * L::cache_bytes; }
  __device__ u16* query() const { return at<u16>(L::query); }
  __device__ float* scores() const { return at<float>(L::scores); }
  __device__ u16* high() const { return at<u16>(L::high); }
  __device__ u16* low() const { return at<u16>(L::low); }
  __device__ float* factors() const { return at<float>(L::factors); }
  __device__ i32* lengths() const { return at<i32>(L::lengths); }
};

}  // namespace grouped
