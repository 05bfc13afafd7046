// What the host hands to the kernels, and how they are launched. Read by the host compiler and by NVRTC.
#pragma once

#include "grouped/arch.h"
#include "grouped/pages.h"

namespace grouped {

constexpr i32 kThreads = 256;
constexpr i32 kWarps = kThreads / 32;
constexpr i32 kRowTile = 16;      // packed (query, head) rows of one tensor-core product
constexpr i32 kCombineDims = 64;  // output dimensions of one block of the combine kernel

// Packed rows are query * heads + head.
struct SplitArguments {
  const u16* q;
  const u8* k;
  const u8* v;
  const i32* block_table;
  const i32* row_lens;
  float* acc;      // [splits, acc_rows, heads, head_dim]
  float* max_sum;  // [splits, acc_rows, heads, 2]
  CacheStrides k_strides;
  CacheStrides v_strides;
  i32 rows;
  i32 page;
  i32 capacity;
  i32 acc_rows;
  float score_scale;
  float v_scale;
  i32 wide_query;    // q starts at a multiple of 16 bytes
  i32 wide_loads;    // caches' bases and strides are multiples of 16 bytes, else of 8
  i32 write_unused;  // also write the splits that own no tile
};

struct CombineArguments {
  const float* acc;
  const float* max_sum;
  const i32* row_lens;
  u16* out;  // fp16 bits [rows, heads, head_dim]
  i32 rows;
  i32 capacity;
  i32 acc_rows;
};

}  // namespace grouped
