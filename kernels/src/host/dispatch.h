// Which code runs on this processor.
#pragma once

#include "host/call.h"

namespace grouped {

struct Implementation {
  const char* name;
  SplitFunction compute_split;
  CombineFunction combine_lane;
};

// Chosen once, when the library is loaded: the best one for the processor, unless the environment variable
// GROUPED_ATTENTION_CPU names another ("scalar", "baseline", "x86-64-v3"). All of them give the same bits.
// Throws RuntimeError if it names one that doesn't exist or can't run here.
const Implementation& implementation();

}  // namespace grouped
