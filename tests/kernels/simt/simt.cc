#include "simt.h"

#include <ucontext.h>

simt::Index threadIdx, blockIdx;

namespace simt {

Block* block = nullptr;

namespace {

constexpr size_t kStackBytes = 128 * 1024;

// Blocks run one after the other, so they share their threads' stacks.
char* stack_of(int fiber) {
  static std::vector<std::unique_ptr<char[]>> stacks;
  while (stacks.size() <= size_t(fiber)) stacks.push_back(std::make_unique<char[]>(kStackBytes));
  return stacks[size_t(fiber)].get();
}

}  // namespace

Block::Block(int threads, std::function<void()> body, bool reverse)
    : body_(std::move(body)), fibers_(size_t(threads)), warps_(size_t(threads / kLanes)), reverse_(reverse) {}

void Block::enter() {
  block->body_();
  block->fibers_[size_t(block->current_)].done = true;
  _longjmp(block->scheduler_, 1);
}

// A context gets a fiber onto its stack; from then on jumps do, which, unlike contexts, need no system call.
void Block::start(int fiber) {
  fibers_[size_t(fiber)].started = true;
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = stack_of(fiber);
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, &Block::enter, 0);
  setcontext(&context);
}

void Block::resume(int fiber) {
  current_ = fiber;
  threadIdx.x = unsigned(fiber);
  if (_setjmp(scheduler_) != 0) return;
  if (!fibers_[size_t(fiber)].started) start(fiber);
  _longjmp(fibers_[size_t(fiber)].place, 1);
}

void Block::pause() {
  if (_setjmp(fibers_[size_t(current_)].place) == 0) _longjmp(scheduler_, 1);
}

void Block::run() {
  block = this;
  for (bool running = true; running;) {
    running = false;
    for (int i = 0; i < threads(); ++i) {
      const int fiber = reverse_ ? threads() - 1 - i : i;
      if (fibers_[size_t(fiber)].done) continue;
      running = true;
      resume(fiber);
    }
  }
}

void Block::wait(Barrier& barrier, int parties) {
  const unsigned generation = barrier.generation;
  if (++barrier.arrived == parties) {
    barrier.arrived = 0;
    ++barrier.generation;
    return;
  }
  while (barrier.generation == generation) pause();
}

}  // namespace simt
