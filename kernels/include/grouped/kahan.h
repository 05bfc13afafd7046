// Compensated sum of the tensor-core products of one score.
#pragma once

#include "grouped/fp32.h"

namespace grouped {

struct Kahan {
  float sum;
  float compensation;
};

GROUPED_HD Kahan kahan_start(float first) { return Kahan{first, 0.0f}; }

GROUPED_HD Kahan kahan_add(Kahan state, float product) {
  const float y = sub(product, state.compensation);
  const float t = add(state.sum, y);
  return Kahan{t, sub(sub(t, state.sum), y)};
}

// The addition turns -0 into +0, so that no maximum depends on an order.
GROUPED_HD float scaled_score(Kahan state, float scale) { return add(mul(state.sum, scale), 0.0f); }

}  // namespace grouped
