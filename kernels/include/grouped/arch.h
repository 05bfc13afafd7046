// Per-architecture constants: splits, and the tensor core's group length and fraction bits.
#pragma once

#include "grouped/platform.h"

namespace grouped {

constexpr i32 kTileTokens = 32;
constexpr i32 kStepLength = 16;  // K of one tensor-core product
constexpr i32 kMaxRows = 8;
constexpr i32 kMinRows = 2;
constexpr i32 kPrecisionVersion = 4;

// splits: the multiprocessors of the reference device, fixed so that bits don't depend on the device at hand.
// group_length, fraction_bits (F): docs/arithmetic.md, "One tensor-core product".
template <int Sm>
struct Arch;

template <>
struct Arch<70> {
  static constexpr i32 splits = 80, group_length = 4, fraction_bits = 23;
};

template <>
struct Arch<80> {
  static constexpr i32 splits = 108, group_length = 8, fraction_bits = 24;
};

template <>
struct Arch<90> {
  static constexpr i32 splits = 132, group_length = 16, fraction_bits = 25;
};

}  // namespace grouped
