// One tile's update of a row's online-softmax state.
#pragma once

#include "grouped/exp.h"
#include "grouped/fp32.h"
#include "grouped/half.h"
#include "grouped/nan.h"

namespace grouped {

struct SoftmaxState {
  float max;
  float sum;
};

GROUPED_HD SoftmaxState empty_softmax() { return SoftmaxState{negative_infinity(), 0.0f}; }

GROUPED_HD float next_max(bool first_live_tile, float old_max, float tile_max) {
  return first_live_tile ? tile_max : larger(old_max, tile_max);
}

GROUPED_HD float probability(bool live, float score, float max) {
  return live ? clamped_exp(sub(score, max)) : 0.0f;
}

GROUPED_HD float rescale_factor(float old_max, float new_max) { return clamped_exp(sub(old_max, new_max)); }

GROUPED_HD float next_sum(bool first_live_tile, float old_sum, float rescale, float tile_sum) {
  return first_live_tile ? tile_sum : fma(old_sum, rescale, tile_sum);
}

GROUPED_HD float next_numerator(bool first_live_tile, float old_value, float rescale, float tile_value) {
  return first_live_tile ? tile_value : fma(old_value, rescale, tile_value);
}

// p = high + low / 2048: what one fp16 drops is kept in a second one, scaled clear of fp16's subnormals.
GROUPED_HD u16 probability_high(float p) { return half_bits(p); }

GROUPED_HD u16 probability_low(float p, u16 high) {
  return half_bits(mul(sub(p, half_value(high)), 2048.0f));
}

GROUPED_HD float stored_numerator(float numerator, float v_scale) {
  return canonical(mul(numerator, v_scale));
}

}  // namespace grouped
