// NaN: how it is stored, and a maximum that keeps it.
#pragma once

#include "grouped/platform.h"

namespace grouped {

constexpr u32 kNanBits = 0x7FFFFFFFu;  // what a tensor core returns
constexpr u16 kNanHalfBits = 0x7FFFu;

GROUPED_HD bool is_nan(float x) { return x != x; }
GROUPED_HD float nan_value() { return bits_float(kNanBits); }
GROUPED_HD float canonical(float x) { return is_nan(x) ? nan_value() : x; }

// fmaxf drops a NaN operand and max.NaN needs sm_80, so the comparison is spelled out.
GROUPED_HD float larger(float a, float b) {
  if (is_nan(a) || is_nan(b)) return nan_value();
  return a > b ? a : b;
}

}  // namespace grouped
