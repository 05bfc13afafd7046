#include "host/call.h"

#include <tvm/ffi/error.h>

#include <algorithm>

#include "grouped/half.h"
#include "host/tensor_core.h"

namespace grouped {
namespace {

i32 longest_live_row(const Problem& problem) {
  i32 longest = 0;
  for (i32 row = 0; row < problem.rows; ++row) {
    const i32 length = problem.row_lens[row];
    if (row_is_live(length, problem.capacity)) longest = std::max(longest, length);
  }
  return longest;
}

void check_live_pages(const Problem& problem, i32 longest) {
  const i32 pages = longest / problem.page + (longest % problem.page != 0);
  for (i32 i = 0; i < pages; ++i) {
    const i32 id = problem.block_table[i];
    if (id >= 0 && id < problem.num_blocks) continue;
    TVM_FFI_THROW(ValueError) << "block_table[0, " << i << "] is " << id << ", but the cache has blocks 0 to "
                              << problem.num_blocks - 1 << " and the lengths reach into this page";
  }
}

i8 half_exponent(u16 bits) { return i8(half_is_zero(bits) ? kZeroExponent : unpack_half(bits).exponent); }

void note_special(i32 lane, bool early, Query* query) {
  const u64 bit = u64(1) << lane;
  if (early) query->early_special_lanes |= bit;
  query->late_special_lanes = (query->late_special_lanes | bit) & ~query->early_special_lanes;
}

void read_lane(const Problem& problem, i32 lane, Query* query) {
  const u16* q = problem.q + i64(lane) * problem.head_dim;
  for (i32 d = 0; d < problem.head_dim; ++d) {
    const bool special = half_is_nan(q[d]) || half_is_infinite(q[d]);
    query->value[d][lane] = special ? 0.0f : half_value(q[d]);
    query->exponent[d][exponent_position(lane)] = special ? i8(kZeroExponent) : half_exponent(q[d]);
    if (special) note_special(lane, d < problem.head_dim - kStepLength, query);
  }
  const i32 length = problem.row_lens[lane / problem.heads];
  query->row_len[lane] = row_is_live(length, problem.capacity) ? length : 0;
}

void clear_padding(const Problem& problem, i32 lanes, Query* query) {
  for (i32 lane = lanes; lane < kMaxLanes; ++lane) {
    for (i32 d = 0; d < problem.head_dim; ++d) {
      query->value[d][lane] = 0.0f;
      query->exponent[d][exponent_position(lane)] = i8(kZeroExponent);
    }
    query->row_len[lane] = 0;
  }
}

}  // namespace

void prepare(const Problem& problem, Call* call) {
  call->problem = problem;
  call->longest = longest_live_row(problem);
  check_live_pages(problem, call->longest);
  call->active = active_splits(call->longest, CurrentArch::splits);
  call->lanes = problem.rows * problem.heads;
  call->query.early_special_lanes = call->query.late_special_lanes = 0;
  for (i32 lane = 0; lane < call->lanes; ++lane) read_lane(problem, lane, &call->query);
  clear_padding(problem, call->lanes, &call->query);
}

}  // namespace grouped
