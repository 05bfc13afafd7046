// Built once per instruction set: everything here must be inlined or local, so that no copy of a shared
// inline function leaks instructions into code that runs on older machines.
#include "grouped/combine.h"

#include "host/combine.h"

namespace grouped {
namespace GROUPED_ISA {
namespace {

float row_max(const Call& call, i32 lane) {
  float max = negative_infinity();
  for (i32 split = 0; split < call.active; ++split) {
    const float* state = lane_max_sum(call.problem, split, lane);
    if (split_contributes(state[1])) max = larger(max, state[0]);
  }
  return max;
}

}  // namespace

void combine_lane(const Call& call, i32 lane) {
  const Problem& p = call.problem;
  const float max = row_max(call, lane);
  float numerator[kMaxHeadDim] = {};
  float denominator = 0.0f;
  for (i32 split = 0; split < call.active; ++split) {
    const float* state = lane_max_sum(p, split, lane);
    if (!split_contributes(state[1])) continue;
    const float weight = combine_weight(state[0], max);
    const float* partial = lane_numerator(p, split, lane);
    for (i32 d = 0; d < p.head_dim; ++d) numerator[d] = fma(partial[d], weight, numerator[d]);
    denominator = fma(state[1], weight, denominator);
  }
  u16* out = p.out + i64(lane) * p.head_dim;
  for (i32 d = 0; d < p.head_dim; ++d) out[d] = combine_result(Fraction{numerator[d], denominator});
}

}  // namespace GROUPED_ISA
}  // namespace grouped
