#include "host/parallel.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <vector>

#include "common/float_environment.h"

namespace grouped {
namespace {

i32 default_threads() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  const i32 wanted = text ? std::atoi(text) : 0;
  return wanted > 0 ? wanted : std::max(1, i32(std::thread::hardware_concurrency()));
}

std::atomic<i32>& thread_setting() {
  static std::atomic<i32> threads{default_threads()};
  return threads;
}

}  // namespace

i32 num_threads() { return thread_setting().load(std::memory_order_relaxed); }

void set_num_threads(i32 threads) { thread_setting().store(std::max(1, threads), std::memory_order_relaxed); }

// Threads are started per call: it costs microseconds against milliseconds of work, and there is no pool to
// survive a fork or an unloaded library.
void parallel_for(i32 workers, i32 items, const std::function<void(i32, i32)>& body) {
  std::atomic<i32> next{0};
  const auto work = [&](i32 worker) {
    const DefaultFloatEnvironment environment;
    for (i32 item = next.fetch_add(1); item < items; item = next.fetch_add(1)) body(worker, item);
  };
  std::vector<std::thread> threads;
  threads.reserve(std::size_t(workers));
  for (i32 worker = 1; worker < std::min(workers, items); ++worker) {
    try {
      threads.emplace_back(work, worker);
    } catch (const std::system_error&) {
      break;  // no more threads to be had: the ones there are do the rest
    }
  }
  work(0);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace grouped
