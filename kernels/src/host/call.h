// One call on the host: the validated problem, what its lengths imply, and the query in the splits' layout.
#pragma once

#include "common/validate.h"
#include "grouped/schedule.h"

namespace grouped {

constexpr i32 kMaxHeads = 6;
constexpr i32 kMaxHeadDim = 256;
constexpr i32 kMaxLanes = 64;  // rows * heads <= 48, padded to blocks of 32

// Lane = row * heads + head: q and every split's partials are contiguous in it.
struct alignas(64) Query {
  float value[kMaxHeadDim][kMaxLanes];  // 0 beyond the last lane and for operands that aren't finite
  i8 exponent[kMaxHeadDim][kMaxLanes];  // at exponent_position(lane): as a half's, subnormals clamped
  i32 row_len[kMaxLanes];               // 0 unless the lane's row is live
  // Lanes (bit = lane) whose q holds an infinity or a NaN: before the last step of 16 dimensions, or only in
  // it.
  u64 early_special_lanes;
  u64 late_special_lanes;
};

// Low enough to lose against every exponent in a chain, high enough that two of them still fit a byte.
constexpr i32 kZeroExponent = -64;

// Where the exponent of a column lies: within a block of 32, those of columns j, j + 8, j + 16 and j + 24 are
// the bytes of one 32-bit word, so that shifts alone widen eight at a time.
GROUPED_HD i32 exponent_position(i32 column) { return column / 32 * 32 + column % 8 * 4 + column % 32 / 8; }

struct Call {
  Problem problem;
  Query query;
  i32 longest = 0;  // tokens
  i32 active = 0;   // splits
  i32 lanes = 0;    // rows * heads
};

// Reads the lengths and the query. Throws ValueError for a live page outside the cache; nothing is written
// yet.
void prepare(const Problem& problem, Call* call);

// Buffers of one worker, private to the kind of split that runs.
struct alignas(64) Scratch {
  unsigned char bytes[192 * 1024];
};

// Computes one split's partials (max, sum, numerator * v_scale) for all lanes.
using SplitFunction = void (*)(const Call& call, i32 split, Scratch* scratch);

// Combines the active splits of one live lane into `head_dim` halves.
using CombineFunction = void (*)(const Call& call, i32 lane);

GROUPED_HD float* lane_numerator(const Problem& problem, i32 split, i32 lane) {
  return problem.acc + (i64(split) * problem.acc_rows * problem.heads + lane) * problem.head_dim;
}

GROUPED_HD float* lane_max_sum(const Problem& problem, i32 split, i32 lane) {
  return problem.max_sum + (i64(split) * problem.acc_rows * problem.heads + lane) * 2;
}

}  // namespace grouped
