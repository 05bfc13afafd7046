#include "host/split_scalar.h"

#include "grouped/e4m3.h"
#include "grouped/kahan.h"
#include "grouped/pages.h"
#include "grouped/partial.h"
#include "host/tensor_core.h"

namespace grouped {
namespace {

// One tile of one lane. Tokens at or past the longest row have no bytes: null.
struct LaneTile {
  i32 first_token;
  i32 live;  // tokens of the lane's row in the tile, from the first
  bool first_live_tile;
  const u8* k[kTileTokens];
  const u8* v[kTileTokens];
};

LaneTile lane_tile(const Call& call, i32 lane, i32 tile, bool first) {
  const Problem& p = call.problem;
  LaneTile result{tile * kTileTokens, 0, first, {}, {}};
  const i32 left = call.query.row_len[lane] - result.first_token;
  result.live = left < 0 ? 0 : left < kTileTokens ? left : kTileTokens;
  for (i32 i = 0; i < kTileTokens && result.first_token + i < call.longest; ++i) {
    const i32 token = result.first_token + i;
    result.k[i] = p.k + token_offset(p.block_table, p.page, p.k_strides, token);
    result.v[i] = p.v + token_offset(p.block_table, p.page, p.v_strides, token);
  }
  return result;
}

float token_score(const Problem& problem, i32 lane, const u8* codes) {
  const u16* q = problem.q + i64(lane) * problem.head_dim;
  Kahan sum{0.0f, 0.0f};
  for (i32 step = 0; step < problem.head_dim; step += kStepLength) {
    u16 k[kStepLength];
    for (i32 i = 0; i < kStepLength; ++i) k[i] = e4m3_half_bits(codes[step + i]);
    const float product = tensor_core_product(q + step, k, kStepLength, 0.0f);
    sum = step == 0 ? kahan_start(product) : kahan_add(sum, product);
  }
  return scaled_score(sum, problem.score_scale);
}

struct TileProbabilities {
  float p[kTileTokens];
  float rescale;
};

float tree_sum(const float* p) {
  float a[kTileTokens];
  for (i32 i = 0; i < kTileTokens; ++i) a[i] = p[i];
  for (i32 stride = 1; stride < kTileTokens; stride *= 2) {
    for (i32 i = 0; i < kTileTokens; i += 2 * stride) a[i] = add(a[i], a[i + stride]);
  }
  return a[0];
}

TileProbabilities update_softmax(const Call& call, i32 lane, const LaneTile& tile, SoftmaxState* state) {
  float scores[kTileTokens];
  float tile_max = negative_infinity();
  for (i32 i = 0; i < tile.live; ++i) {
    scores[i] = token_score(call.problem, lane, tile.k[i]);
    tile_max = larger(tile_max, scores[i]);
  }
  const float max = next_max(tile.first_live_tile, state->max, tile_max);
  TileProbabilities result{{}, tile.first_live_tile ? 0.0f : rescale_factor(state->max, max)};
  for (i32 i = 0; i < tile.live; ++i) result.p[i] = probability(true, scores[i], max);
  state->sum = next_sum(tile.first_live_tile, state->sum, result.rescale, tree_sum(result.p));
  state->max = max;
  return result;
}

float value_product(const LaneTile& tile, const TileProbabilities& probabilities, i32 d) {
  float accumulator = 0.0f;
  for (i32 step = 0; step < kTileTokens; step += kStepLength) {
    u16 high[kStepLength], low[kStepLength], value[kStepLength], value_low[kStepLength];
    for (i32 i = 0; i < kStepLength; ++i) {
      const u8 code = tile.v[step + i] ? tile.v[step + i][d] : u8(0);
      high[i] = probability_high(probabilities.p[step + i]);
      low[i] = probability_low(probabilities.p[step + i], high[i]);
      value[i] = e4m3_value_half_bits(code);
      value_low[i] = e4m3_residual_half_bits(code);
    }
    accumulator = tensor_core_product(high, value, kStepLength, accumulator);
    accumulator = tensor_core_product(low, value_low, kStepLength, accumulator);
  }
  return accumulator;
}

bool has_nan_value(const LaneTile& tile, i32 d) {
  for (i32 i = 0; i < tile.live; ++i) {
    if (e4m3_is_nan(tile.v[i][d])) return true;
  }
  return false;
}

void compute_lane(const Call& call, i32 split, i32 lane) {
  const Problem& p = call.problem;
  const TileRange range = split_tiles(call.longest, CurrentArch::splits, split);
  float* numerator = lane_numerator(p, split, lane);
  SoftmaxState state = empty_softmax();
  for (i32 d = 0; d < p.head_dim; ++d) numerator[d] = 0.0f;
  for (i32 t = range.begin; t < range.end; ++t) {
    const LaneTile tile = lane_tile(call, lane, t, t == range.begin);
    if (tile.live == 0) break;
    const TileProbabilities probabilities = update_softmax(call, lane, tile, &state);
    for (i32 d = 0; d < p.head_dim; ++d) {
      const float product = value_product(tile, probabilities, d);
      numerator[d] = next_numerator(tile.first_live_tile, numerator[d], probabilities.rescale, product);
      if (has_nan_value(tile, d)) numerator[d] = nan_value();
    }
  }
  for (i32 d = 0; d < p.head_dim; ++d) numerator[d] = stored_numerator(numerator[d], p.v_scale);
  float* max_sum = lane_max_sum(p, split, lane);
  max_sum[0] = canonical(state.max);
  max_sum[1] = canonical(state.sum);
}

}  // namespace

void compute_split_scalar(const Call& call, i32 split, Scratch*) {
  for (i32 lane = 0; lane < call.lanes; ++lane) compute_lane(call, split, lane);
}

}  // namespace grouped
