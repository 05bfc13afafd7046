// The plain split: one lane and one token at a time, through the integer tensor-core model.
#pragma once

#include "host/call.h"

namespace grouped {

void compute_split_scalar(const Call& call, i32 split, Scratch* scratch);

}  // namespace grouped
