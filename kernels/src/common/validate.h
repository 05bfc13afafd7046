// Checks the arguments of one call and turns them into plain numbers. Both backends go through here, before
// anything is written or launched.
#pragma once

#include <tvm/ffi/container/tensor.h>

#include "grouped/arch.h"
#include "grouped/pages.h"

namespace grouped {

// One call, validated. Strides are in bytes (the caches' elements are bytes).
struct Problem {
  const u16* q = nullptr;  // fp16 bits [rows, heads, head_dim], contiguous
  const u8* k = nullptr;   // E4M3 codes [num_blocks, page, 1, head_dim], 16-byte aligned
  const u8* v = nullptr;
  const i32* block_table = nullptr;  // [entries]
  const i32* row_lens = nullptr;     // [rows]
  u16* out = nullptr;                // fp16 bits, like q; null in the partials op
  float* acc = nullptr;              // [splits, acc_rows, heads, head_dim]
  float* max_sum = nullptr;          // [splits, acc_rows, heads, 2]

  i32 rows = 0;
  i32 heads = 0;
  i32 head_dim = 0;
  i32 page = 0;
  i32 entries = 0;
  i32 capacity = 0;  // tokens: entries * page
  i32 acc_rows = 0;  // 8 in the workspace, rows in the partials op
  i64 num_blocks = 0;
  CacheStrides k_strides{0, 0};
  CacheStrides v_strides{0, 0};

  float score_scale = 0.0f;  // RN(RN(softmax_scale) * RN(k_scale))
  float v_scale = 0.0f;

  bool q_aligned16 = false;    // base
  bool out_aligned16 = false;  // base; false without out
  bool k_aligned16 = false;    // base and both strides
  bool v_aligned16 = false;
  DLDevice device{kDLCPU, 0};
};

// The tensors of a call as they came. `out` is null in the partials op.
struct Arguments {
  const tvm::ffi::TensorView& q;
  const tvm::ffi::TensorView& k_cache;
  const tvm::ffi::TensorView& v_cache;
  const tvm::ffi::TensorView& block_table;
  const tvm::ffi::TensorView& row_lens;
  const tvm::ffi::TensorView* out;
  const tvm::ffi::TensorView& acc;
  const tvm::ffi::TensorView& max_sum;
  double softmax_scale;
  double k_scale;
  double v_scale;
};

// Throws TypeError (dtypes) or ValueError (everything else), with advice; reads no tensor's contents.
Problem validate(const Arguments& arguments, DLDeviceType device_type, i32 splits);

}  // namespace grouped
