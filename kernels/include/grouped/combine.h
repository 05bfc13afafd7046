// The combine of a row's splits, in ascending order; splits whose sum is 0 are skipped.
#pragma once

#include "grouped/exp.h"
#include "grouped/fp32.h"
#include "grouped/half.h"

namespace grouped {

struct Fraction {
  float numerator;
  float denominator;
};

GROUPED_HD bool split_contributes(float sum) { return sum != 0.0f; }  // true for a NaN sum

GROUPED_HD float combine_weight(float split_max, float row_max) {
  return clamped_exp(sub(split_max, row_max));
}

GROUPED_HD Fraction combine_add(Fraction total, float numerator, float sum, float weight) {
  return Fraction{fma(numerator, weight, total.numerator), fma(sum, weight, total.denominator)};
}

GROUPED_HD u16 combine_result(Fraction total) {
  return result_half_bits(div(total.numerator, total.denominator));
}

}  // namespace grouped
