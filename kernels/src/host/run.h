// The two operations on the host, on validated problems.
#pragma once

#include "common/validate.h"

namespace grouped {

void run_attention(const Problem& problem);
void run_partials(const Problem& problem);

}  // namespace grouped
