// The plain split: one lane and one token at a time, through the integer tensor-core model.
#pragma once

#include "host/call.h"

namespace grouped {

void compute_split_scalar(const Call& call, i32 split, Scratch* scratch);

// The score of one token for one lane, by the integer model. `codes` are the token's head_dim E4M3 codes.
float scalar_score(const Problem& problem, i32 lane, const u8* codes);

}  // namespace grouped
