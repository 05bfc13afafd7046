// A parallel loop over plain threads. Results never depend on their number.
#pragma once

#include <functional>

#include "grouped/platform.h"

namespace grouped {

// At least 1. Until set, OMP_NUM_THREADS, else the processors this process may run on.
i32 num_threads();
void set_num_threads(i32 threads);

// Runs body(worker, item) for every item in [0, items); worker < workers. The caller is worker 0.
void parallel_for(i32 workers, i32 items, const std::function<void(i32 worker, i32 item)>& body);

}  // namespace grouped
