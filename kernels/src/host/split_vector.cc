// The vectorised split: the plain one's bits, some twenty times as fast. Built once per instruction set:
// everything here must be inlined or local, so that no shared inline function leaks instructions into code
// for older machines.
#include "host/split_vector.h"

#include <cfenv>

#include "grouped/kahan.h"
#include "host/vector_softmax.h"

namespace grouped {
namespace GROUPED_ISA {
namespace {

// Only whole, uninlined functions run between these two: compilers move arithmetic across a change of mode.
class TowardZero {
 public:
  TowardZero() { std::fesetround(FE_TOWARDZERO); }
  ~TowardZero() { std::fesetround(FE_TONEAREST); }
};

template <i32 V>
GROUPED_HD void score_products(const Call& call, i32 token, i32 lane, Working* w) {
  for (i32 step = 0; step < call.problem.head_dim / kStepLength; ++step) {
    const i32 d = step * kStepLength;
    const Operands x{&call.query.value[d][lane], &call.query.exponent[d][lane], kMaxLanes,
                     &w->tile.k[token][d],       &w->tile.k_exponent[token][d], 1};
    Floats c[V] = {};
    accumulate_step<V>(x, true, c);
    for (i32 v = 0; v < V; ++v) store(&w->products[token % kBatch][step][lane + v * kVectorLanes], c[v]);
  }
}

GROUPED_HD void score_products_of_block(const Call& call, i32 token, i32 lane, Working* w) {
  const i32 vectors = (call.lanes - lane + kVectorLanes - 1) / kVectorLanes;
  if (vectors >= 4) return score_products<4>(call, token, lane, w);
  if (vectors == 3) return score_products<3>(call, token, lane, w);
  if (vectors == 2) return score_products<2>(call, token, lane, w);
  score_products<1>(call, token, lane, w);
}

__attribute__((noinline)) void batch_products(const Call& call, i32 first, Working* w) {
  for (i32 token = first; token < first + kBatch; ++token) {
    for (i32 lane = 0; lane < call.lanes; lane += kBlock) score_products_of_block(call, token, lane, w);
  }
}

// Kahan's sum of a token's products, and the scores.
__attribute__((noinline)) void sum_scores(const Call& call, i32 token, Working* w) {
  const i32 steps = call.problem.head_dim / kStepLength;
  const float scale = call.problem.score_scale;
  for (i32 lane = 0; lane < w->softmax.width; lane += kVectorLanes) {
    Floats sum = load<Floats>(&w->products[token % kBatch][0][lane]), compensation = {};
    for (i32 step = 1; step < steps; ++step) {
      const Floats y = load<Floats>(&w->products[token % kBatch][step][lane]) - compensation;
      const Floats t = sum + y;
      compensation = (t - sum) - y;
      sum = t;
    }
    store(&w->softmax.score[token][lane], sum * scale + 0.0f);
  }
}

// An infinite product turns Kahan's correction into NaN, and with it every later sum: only one of the last
// step can leave an infinite score, and then the finite steps before don't count.
float late_special_score(const Problem& problem, i32 lane, const u8* codes) {
  const i32 step = problem.head_dim - kStepLength;
  u16 k[kStepLength];
  for (i32 i = 0; i < kStepLength; ++i) k[i] = e4m3_half_bits(codes[step + i]);
  const u16* q = problem.q + i64(lane) * problem.head_dim + step;
  return tensor_core_product(q, k, kStepLength, 0.0f) * problem.score_scale;
}

// Scores that aren't finite because of their operands. Tokens past the longest row have no codes and no live
// row.
void patch_scores(const Call& call, i32 token, Working* w) {
  const u8* codes = w->tile.k_codes[token];
  if (codes == nullptr) return;
  const u64 all = (u64(1) << call.lanes) - 1;
  const u64 nan = w->tile.k_nan[token] ? all : call.query.early_special_lanes;
  float* score = w->softmax.score[token];
  for (u64 left = nan; left != 0; left &= left - 1) score[__builtin_ctzll(left)] = nan_value();
  for (u64 left = call.query.late_special_lanes & ~nan; left != 0; left &= left - 1) {
    const i32 lane = __builtin_ctzll(left);
    score[lane] = late_special_score(call.problem, lane, codes);
  }
}

void compute_scores(const Call& call, Working* w) {
  for (i32 first = 0; first < kTileTokens; first += kBatch) {
    {
      const TowardZero mode;
      batch_products(call, first, w);
    }
    for (i32 token = first; token < first + kBatch; ++token) {
      sum_scores(call, token, w);
      patch_scores(call, token, w);
    }
  }
}

bool lane_is_live(const Call& call, const Tile& tile, i32 lane) {
  return tile.first_token < call.query.row_len[lane];
}

GROUPED_HD void lane_values(const Working& w, i32 lane, i32 block, float* values) {
  constexpr i32 vectors = kBlock / kVectorLanes;
  const Tile& tile = w.tile;
  const Softmax& s = w.softmax;
  Floats c[vectors] = {};
  for (i32 i = 0; i < kTileTokens; i += kStepLength) {
    const float* v = tile.v[block][i];
    accumulate_step<vectors>(Operands{v, tile.v_exponent[block][i], kBlock, &s.high[i][lane],
                                      &s.high_exponent[i][lane], kMaxLanes},
                             i == 0, c);
    accumulate_step<vectors>(Operands{v, tile.v_low_exponent[block][i], kBlock, &s.low[i][lane],
                                      &s.low_exponent[i][lane], kMaxLanes},
                             false, c);
  }
  for (i32 v = 0; v < vectors; ++v) store(values + v * kVectorLanes, c[v]);
}

__attribute__((noinline)) void block_values(const Call& call, i32 block, Working* w) {
  for (i32 lane = 0; lane < call.lanes; ++lane) {
    // A NaN among the probabilities makes NaN of the whole product: see update_block.
    if (!lane_is_live(call, w->tile, lane) || is_nan(w->softmax.tile_sum[lane])) continue;
    lane_values(*w, lane, block, w->values[lane]);
  }
}

__attribute__((noinline)) void update_block(const Call& call, i32 split, i32 block, const Working& w) {
  for (i32 lane = 0; lane < call.lanes; ++lane) {
    if (!lane_is_live(call, w.tile, lane)) continue;
    float* numerator = lane_numerator(call.problem, split, lane) + block * kBlock;
    const bool nan = is_nan(w.softmax.tile_sum[lane]);
    const float rescale = w.softmax.rescale[lane];
    for (i32 d = 0; d < kBlock; ++d) {
      const float value = nan ? nan_value() : w.values[lane][d];
      numerator[d] = next_numerator(w.tile.first, numerator[d], rescale, value);
    }
  }
}

void spread_nan_values(const Call& call, i32 split, const Tile& tile) {
  for (i32 i = 0; i < kTileTokens; ++i) {
    if (!tile.v_nan[i]) continue;
    for (i32 lane = 0; lane < call.lanes; ++lane) {
      if (tile.first_token + i >= call.query.row_len[lane]) continue;
      float* numerator = lane_numerator(call.problem, split, lane);
      for (i32 d = 0; d < call.problem.head_dim; ++d) {
        if (e4m3_is_nan(tile.v_codes[i][d])) numerator[d] = nan_value();
      }
    }
  }
}

void process_tile(const Call& call, i32 split, Working* w) {
  for (i32 i = 0; i < kTileTokens; ++i) decode_token(call.problem.head_dim, i, &w->tile);
  compute_scores(call, w);
  update_softmax(call, w->tile, &w->softmax);
  for (i32 block = 0; block < call.problem.head_dim / kBlock; ++block) {
    {
      const TowardZero mode;
      block_values(call, block, w);
    }
    update_block(call, split, block, *w);
  }
  spread_nan_values(call, split, w->tile);
}

void start(const Call& call, i32 split, Softmax* s) {
  s->width = (call.lanes + kVectorLanes - 1) / kVectorLanes * kVectorLanes;
  for (i32 lane = 0; lane < kMaxLanes; ++lane) {
    s->max[lane] = negative_infinity();
    s->sum[lane] = 0.0f;
  }
  float* numerator = lane_numerator(call.problem, split, 0);
  for (i32 i = 0; i < call.lanes * call.problem.head_dim; ++i) numerator[i] = 0.0f;
}

void finish(const Call& call, i32 split, const Softmax& s) {
  float* numerator = lane_numerator(call.problem, split, 0);
  for (i32 i = 0; i < call.lanes * call.problem.head_dim; ++i) {
    numerator[i] = stored_numerator(numerator[i], call.problem.v_scale);
  }
  for (i32 lane = 0; lane < call.lanes; ++lane) {
    lane_max_sum(call.problem, split, lane)[0] = canonical(s.max[lane]);
    lane_max_sum(call.problem, split, lane)[1] = canonical(s.sum[lane]);
  }
}

}  // namespace

void compute_split(const Call& call, i32 split, Scratch* scratch) {
  Working* w = reinterpret_cast<Working*>(scratch->bytes);
  const TileRange range = split_tiles(call.longest, CurrentArch::splits, split);
  start(call, split, &w->softmax);
  for (i32 index = range.begin; index < range.end; ++index) {
    locate(call, index, index == range.begin, &w->tile);
    process_tile(call, split, w);
  }
  finish(call, split, w->softmax);
}

}  // namespace GROUPED_ISA
}  // namespace grouped
