// The combine of one lane: compiled for several instruction sets, so only declared per namespace here.
#pragma once

#include "host/call.h"

namespace grouped {
namespace baseline {
void combine_lane(const Call& call, i32 lane);
}
namespace v3 {
void combine_lane(const Call& call, i32 lane);
}
}  // namespace grouped
