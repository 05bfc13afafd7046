// The vectorised split: compiled for several instruction sets, so only declared per namespace here.
#pragma once

#include "host/call.h"

namespace grouped {
namespace baseline {
void compute_split(const Call& call, i32 split, Scratch* scratch);
}
namespace v3 {
void compute_split(const Call& call, i32 split, Scratch* scratch);
}
}  // namespace grouped
