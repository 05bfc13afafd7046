// A CUDA block on a CPU: every thread is a fiber, all on one OS thread, switched only where they wait for
// each other. Enough of the language for the kernels' headers to compile unchanged with a host compiler.
#pragma once

#include <setjmp.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#define __device__
#define __forceinline__ inline
// Blocks run on one OS thread: its local storage holds these and nothing else, so it can be filled with
// rubbish.
#define __shared__ static thread_local

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

using std::max;
using std::min;

namespace simt {

constexpr int kLanes = 32;

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

struct Barrier {
  int arrived = 0;
  unsigned generation = 0;
};

// What the lanes of a warp show each other.
struct Exchange {
  Barrier barrier;
  uint32_t words[kLanes][16];
};

struct Fiber {
  jmp_buf place;
  bool started = false;
  bool done = false;
  const Barrier* waits_at = nullptr;
  unsigned generation = 0;  // of that barrier, when it was reached
  bool is_stopped() const { return done || (waits_at && waits_at->generation == generation); }
};

class Block {
 public:
  // Runs `body` on each of the threads; `reverse` changes the order in which they are switched to.
  Block(int threads, std::function<void()> body, bool reverse);
  // std::runtime_error when no thread can go on, or one called `fail`.
  void run();

  void wait(Barrier& barrier, int parties);
  // At the barrier of the block, for which threads that have ended don't count (sm_70 and later).
  void wait_for_all() { wait(all_, running_); }
  // Ends the block from inside a thread.
  [[noreturn]] void fail(const char* why);
  Exchange& warp() { return warps_[current_ / kLanes]; }
  int threads() const { return int(fibers_.size()); }
  int current() const { return current_; }
  // Whatever else a block's threads have to keep; one type per block.
  template <typename T>
  T& of_thread() {
    if (!kept_) kept_ = std::make_shared<std::vector<T>>(fibers_.size());
    return (*static_cast<std::vector<T>*>(kept_.get()))[size_t(current_)];
  }

 private:
  static void enter();
  void start(int fiber);
  void resume(int fiber);
  void pause();
  int resume_all();
  bool is_over() const;
  static bool open_if_all(Barrier& barrier, int parties);
  std::string stuck() const;

  std::function<void()> body_;
  std::vector<Fiber> fibers_;
  std::vector<Exchange> warps_;
  Barrier all_;
  jmp_buf scheduler_;
  int current_ = 0;
  int running_;  // threads that have not ended
  bool reverse_;
  std::string failure_;
  std::shared_ptr<void> kept_;
};

extern Block* block;

// What is being run, for messages: a kernel and its block.
void announce(const char* kernel, int x, int y);
std::string place();
// From now on a signal that ends the process says first where that was.
void watch_signals();
void poison_shared();

inline int lane() { return block->current() % kLanes; }
inline void warp_wait() { block->wait(block->warp().barrier, kLanes); }

// Shows `count` words to the warp, and lets `read` look at everyone's.
template <typename Read>
auto exchange(const uint32_t* words, int count, Read read) {
  Exchange& warp = block->warp();
  std::copy(words, words + count, warp.words[lane()]);
  warp_wait();
  auto result = read(warp.words);
  warp_wait();
  return result;
}

inline uint32_t bits(float x) {
  uint32_t word;
  std::memcpy(&word, &x, sizeof word);
  return word;
}
inline float value(uint32_t word) {
  float x;
  std::memcpy(&x, &word, sizeof x);
  return x;
}

}  // namespace simt

extern simt::Index threadIdx, blockIdx;

inline void __syncthreads() { simt::block->wait_for_all(); }
inline void __syncwarp() { simt::warp_wait(); }

inline float __shfl_xor_sync(unsigned, float x, int distance) {
  const uint32_t word = simt::bits(x);
  return simt::exchange(&word, 1,
                        [&](auto& words) { return simt::value(words[simt::lane() ^ distance][0]); });
}

inline bool __any_sync(unsigned, bool predicate) {
  const uint32_t word = predicate;
  return simt::exchange(&word, 1, [](auto& words) {
    return std::any_of(words, words + simt::kLanes, [](auto& each) { return each[0] != 0; });
  });
}

inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  const uint64_t bytes = uint64_t(high) << 32 | low;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) result |= unsigned(bytes >> (8 * (selector >> 4 * i & 7)) & 0xFF) << 8 * i;
  return result;
}

inline int atomicMin(int* address, int x) {
  const int old = *address;
  *address = std::min(old, x);
  return old;
}

inline float atomicAdd(float* address, float x) {
  const float old = *address;
  *address = old + x;
  return old;
}
