// Shared memory of the split kernel. Read by the host compiler (for its size) and by NVRTC.
//
// Rows are padded so that the lanes of a warp meet different banks: key, value and query rows by 16 elements,
// score and probability rows by 8.
#pragma once

#include "cuda/launch.h"

namespace grouped {

constexpr i32 kChunkTokens = 64;  // tokens between two barriers: two tiles
constexpr i32 kHalfTokens = 16;   // pages are multiples of 16 tokens, so these never span two
constexpr i32 kChunkHalves = kChunkTokens / kHalfTokens;
constexpr i32 kTableChunks = 4;  // chunks whose page offsets are kept

template <i32 Heads, i32 HeadDim, i32 RowTiles, i32 Sm>
struct Layout {
  static constexpr i32 heads = Heads, head_dim = HeadDim, row_tiles = RowTiles, sm = Sm;
  static constexpr i32 rows = RowTiles * kRowTile;

  // Buffers for keys and values: a ring on architectures that copy asynchronously, else one of each.
  static constexpr i32 stages = Sm >= 90 ? 4 : Sm >= 80 ? 3 : 1;

  static constexpr i32 query_stride = HeadDim + 16;                // halves
  static constexpr i32 cache_stride = HeadDim + 16;                // bytes
  static constexpr i32 score_stride = kChunkTokens + 8;            // floats
  static constexpr i32 probability_stride = kChunkTokens + 8;      // halves
  static constexpr i32 cache_bytes = kChunkTokens * cache_stride;  // of one chunk

  static constexpr i32 keys = 0;
  static constexpr i32 values = keys + stages * cache_bytes;
  static constexpr i32 query = values + stages * cache_bytes;
  static constexpr i32 scores = query + rows * query_stride * 2;
  static constexpr i32 high = scores + rows * score_stride * 4;
  static constexpr i32 low = high + rows * probability_stride * 2;
  static constexpr i32 factors = low + rows * probability_stride * 2;         // [2 tiles, rows]
  static constexpr i32 lengths = factors + 2 * rows * 4;                      // [rows]
  static constexpr i32 table = lengths + rows * 4;                            // [kTableChunks, kChunkHalves]
  static constexpr i32 first_nan = table + kTableChunks * kChunkHalves * 16;  // [warps, 32 dimensions]
  static constexpr i32 bytes = first_nan + kWarps * 32 * 4;

  static_assert(query % 16 == 0 && scores % 16 == 0 && high % 16 == 0 && low % 16 == 0 && table % 16 == 0);
  // What an architecture lets one block use.
  static_assert(bytes <= (Sm >= 90 ? 227 : Sm >= 80 ? 163 : 96) * 1024, "too much shared memory");
};

}  // namespace grouped
