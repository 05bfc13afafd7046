// A CUDA block on a CPU: every thread is a fiber, all on one OS thread, switched only where they wait for
// each other.
#pragma once

#include <setjmp.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace simt {

constexpr int kLanes = 32;
constexpr int kWarps = 32;  // of a block at most
constexpr int kBarriers = 16;
constexpr uint32_t kWarp = 0xFFFFFFFFu;

inline bool is_named(uint32_t mask, int lane) { return (mask >> lane & 1) != 0; }

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

struct Votes {
  int yes = 0, no = 0;
};

struct Barrier {
  int arrived = 0;
  unsigned generation = 0;
  bool whole = false;  // all threads of the block that have not ended must come
  int parties = 0;     // else so many, and of a warp that came those that have ended count as there
  std::array<uint32_t, kWarps> came{};  // lanes of each warp
  Votes votes[2];                       // of those who came, in even and in odd generations
};

// What the lanes of a warp show each other. Lanes wait with a mask of those that must come; disjoint masks
// have barriers of their own.
struct Exchange {
  uint32_t alive = 0;
  std::map<uint32_t, Barrier> barriers;
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

  // At the barrier of the block, for which threads that have ended don't count (sm_70 and later). What all
  // said.
  Votes wait_for_all(bool predicate = true, int name = 0);
  // At a barrier with a name, for `parties` arrivals; `arrive` counts as one and goes on.
  void wait_at(int name, int parties);
  void arrive_at(int name, int parties);
  // For the lanes of a warp that `mask` names and that have not ended.
  void wait_for_lanes(uint32_t mask);
  // Lets the others go on first.
  void yield() { pause(); }
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
  void end();
  void wait(Barrier& barrier, int parties);
  Barrier& named(int name);
  void come_to(Barrier& barrier, int parties);
  int needed_at(const Barrier& barrier) const;
  static bool open_if_all(Barrier& barrier, int parties);
  bool is_of_block(const Barrier* barrier) const;
  std::string stuck() const;

  std::function<void()> body_;
  std::vector<Fiber> fibers_;
  std::vector<Exchange> warps_;
  std::array<Barrier, kBarriers> named_;  // 0 is that of __syncthreads
  jmp_buf scheduler_;
  int current_ = 0;
  int running_;  // threads that have not ended
  bool reverse_;
  std::string failure_;
  std::shared_ptr<void> kept_;
};

extern Block* block;

// What is being run, for messages: a kernel and its block.
void announce(const char* kernel, Index of, Index grid);
std::string place();
// From now on a signal that ends the process says first where that was.
void watch_signals();
void poison_shared();
// Where the memory begins that a launch gives to its blocks.
void give_shared(void* memory);

// Addresses of shared memory as 32 bits, as instructions take them. Those that aren't in it end the block.
uint32_t to_shared(const void* generic);
unsigned char* from_shared(uint32_t address);

inline int lane() { return block->current() % kLanes; }

// Shows `count` words to the lanes that `mask` names, and lets `read` look at theirs. What others showed
// before is rubbish.
template <typename Read>
auto exchange(uint32_t mask, const uint32_t* words, int count, Read read) {
  Exchange& warp = block->warp();
  std::copy(words, words + count, warp.words[lane()]);
  block->wait_for_lanes(mask);
  auto result = read(warp.words);
  block->wait_for_lanes(mask);
  return result;
}

// By the whole warp: what an instruction that is `aligned` needs.
template <typename Read>
auto exchange_all(const uint32_t* words, int count, Read read) {
  if (block->warp().alive != kWarp) block->fail("an instruction of a whole warp, of which lanes have ended");
  return exchange(kWarp, words, count, read);
}

}  // namespace simt

extern simt::Index threadIdx, blockIdx, blockDim, gridDim;
