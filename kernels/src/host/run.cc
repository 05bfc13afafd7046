#include "host/run.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "common/float_environment.h"
#include "grouped/nan.h"
#include "host/dispatch.h"
#include "host/parallel.h"
#include "host/tensor_core.h"

namespace grouped {
namespace {

void compute_splits(const Call& call) {
  const SplitFunction compute = implementation().compute_split;
  const i32 workers = std::min(num_threads(), call.active);
  const std::unique_ptr<Scratch[]> scratch(new Scratch[std::size_t(workers)]);
  parallel_for(workers, call.active,
               [&](i32 worker, i32 split) { compute(call, split, &scratch[std::size_t(worker)]); });
}

void fill_row(const Problem& problem, i32 row, u16 bits) {
  const i64 elements = i64(problem.heads) * problem.head_dim;
  std::fill_n(problem.out + row * elements, elements, bits);
}

void combine(const Call& call) {
  const Problem& p = call.problem;
  for (i32 row = 0; row < p.rows; ++row) {
    if (!row_is_live(p.row_lens[row], p.capacity))
      fill_row(p, row, p.row_lens[row] > 0 ? kNanHalfBits : u16(0));
  }
  const CombineFunction combine_lane = implementation().combine_lane;
  parallel_for(std::min(num_threads(), call.lanes), call.lanes, [&](i32, i32 lane) {
    if (call.query.row_len[lane] > 0) combine_lane(call, lane);
  });
}

void fill_lane(const Problem& problem, i32 split, i32 lane, float max, float rest) {
  std::fill_n(lane_numerator(problem, split, lane), problem.head_dim, rest);
  lane_max_sum(problem, split, lane)[0] = max;
  lane_max_sum(problem, split, lane)[1] = rest;
}

// What no split computes: idle splits, and the rows over capacity.
void fill_partials(const Call& call) {
  const Problem& p = call.problem;
  for (i32 split = 0; split < CurrentArch::splits; ++split) {
    for (i32 lane = 0; lane < call.lanes; ++lane) {
      const bool over = p.row_lens[lane / p.heads] > p.capacity;
      if (over) fill_lane(p, split, lane, nan_value(), nan_value());
      if (!over && split >= call.active) fill_lane(p, split, lane, bits_float(0xFF800000u), 0.0f);
    }
  }
}

std::unique_ptr<Call> prepared(const Problem& problem) {
  auto call = std::make_unique<Call>();
  prepare(problem, call.get());
  return call;
}

}  // namespace

void run_attention(const Problem& problem) {
  const DefaultFloatEnvironment environment;
  const std::unique_ptr<Call> call = prepared(problem);
  if (call->longest > 0) compute_splits(*call);
  combine(*call);
}

void run_partials(const Problem& problem) {
  const DefaultFloatEnvironment environment;
  const std::unique_ptr<Call> call = prepared(problem);
  compute_splits(*call);
  fill_partials(*call);
}

}  // namespace grouped
