#include "simt.h"

#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>

simt::Index threadIdx, blockIdx, blockDim, gridDim;

namespace simt {

Block* block = nullptr;

namespace {

constexpr size_t kStackBytes = 1024 * 1024;  // the system gives only what is touched
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

// Where windows onto shared memory begin, as 32-bit addresses: what a launch gave, and what sources declare.
constexpr uint32_t kGiven = 0x10000000, kDeclared = 0x20000000, kWindowBytes = 0x1000000;

const char* kernel_now = "nothing";
// Both at a page's beginning, so that alignment is the same in 32 bits.
uintptr_t given = 0, declared = 0;
thread_local char anchor;  // touched, it has the library's thread-local storage allocated

// Blocks run one after the other, so they share their threads' stacks. Below each is memory that can't be
// touched.
char* stack_of(int fiber) {
  static std::vector<char*> stacks;
  while (stacks.size() <= size_t(fiber)) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* const made = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (made == MAP_FAILED) throw std::runtime_error("no memory for a thread");
    mprotect(made, size_t(sysconf(_SC_PAGESIZE)), PROT_NONE);
    stacks.push_back(static_cast<char*>(made));
  }
  return stacks[size_t(fiber)];
}

// Reads of memory that isn't there, misaligned ones and ends of arrays all come here.
void tell(int number) {
  char text[160];
  const int thread = block ? block->current() : 0;
  const int length =
      std::snprintf(text, sizeof text, "signal %d in %s, thread %d\n", number, place().c_str(), thread);
  if (write(STDERR_FILENO, text, size_t(length)) < 0) _exit(1);
  raise(number);
}

uintptr_t page_of(const void* address) { return reinterpret_cast<uintptr_t>(address) / 4096 * 4096; }

// The thread-local storage of the library that this function is in, found by one of its addresses.
int poison_own(dl_phdr_info* info, size_t, void* inside) {
  const ElfW(Phdr)* storage = nullptr;
  bool is_own = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) & part = info->dlpi_phdr[i];
    if (part.p_type == PT_TLS) storage = &part;
    const ElfW(Addr) from = info->dlpi_addr + part.p_vaddr, at = reinterpret_cast<ElfW(Addr)>(inside);
    is_own |= part.p_type == PT_LOAD && from <= at && at < from + part.p_memsz;
  }
  if (!is_own || !storage || !info->dlpi_tls_data) return 0;
  std::memset(info->dlpi_tls_data, 0xFF, storage->p_memsz);
  declared = page_of(info->dlpi_tls_data);
  return 1;
}

}  // namespace

void announce(const char* kernel, Index of, Index grid) {
  kernel_now = kernel;
  blockIdx = of;
  gridDim = grid;
}

std::string place() {
  return std::string(kernel_now) + " block (" + std::to_string(blockIdx.x) + ", " +
         std::to_string(blockIdx.y) + ")";
}

void poison_shared() {
  static char inside;
  *const_cast<volatile char*>(&anchor) = 0;
  if (dl_iterate_phdr(poison_own, &inside) == 0) throw std::runtime_error("no thread-local storage");
}

void give_shared(void* memory) { given = page_of(memory); }

uint32_t to_shared(const void* generic) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(generic);
  if (address - given < kWindowBytes) return kGiven + uint32_t(address - given);
  if (address - declared < kWindowBytes) return kDeclared + uint32_t(address - declared);
  block->fail("an address that isn't of shared memory");
}

unsigned char* from_shared(uint32_t address) {
  if (address - kGiven < kWindowBytes) return reinterpret_cast<unsigned char*>(given + (address - kGiven));
  if (address - kDeclared < kWindowBytes)
    return reinterpret_cast<unsigned char*>(declared + (address - kDeclared));
  block->fail("an address that isn't of shared memory");
}

void watch_signals() {
  struct sigaction action = {};
  action.sa_handler = tell;
  action.sa_flags = SA_RESETHAND | SA_NODEFER;
  for (const int number : kSignals) sigaction(number, &action, nullptr);
}

Block::Block(int threads, std::function<void()> body, bool reverse)
    : body_(std::move(body)),
      fibers_(size_t(threads)),
      warps_(size_t((threads + kLanes - 1) / kLanes)),
      running_(threads),
      reverse_(reverse) {
  for (int i = 0; i < threads; ++i) warps_[size_t(i / kLanes)].alive |= 1u << i % kLanes;
}

void Block::enter() {
  block->body_();
  block->end();
  _longjmp(block->scheduler_, 1);
}

// Those who waited for this thread wait for the others only.
void Block::end() {
  fibers_[size_t(current_)].done = true;
  --running_;
  Exchange& lanes = warp();
  lanes.alive &= ~(1u << current_ % kLanes);
  for (Barrier& each : named_) open_if_all(each, each.whole ? running_ : needed_at(each));
  for (auto& [mask, barrier] : lanes.barriers) open_if_all(barrier, __builtin_popcount(mask & lanes.alive));
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
  blockDim = Index{unsigned(threads()), 1, 1};
  poison_shared();
  while (!is_over()) {
    const int resumed = resume_all();
    if (!failure_.empty()) throw std::runtime_error(failure_);
    if (resumed == 0) throw std::runtime_error(stuck());
  }
}

// Once each thread that can go on; how many those were.
int Block::resume_all() {
  int resumed = 0;
  for (int i = 0; i < threads() && failure_.empty(); ++i) {
    const int fiber = reverse_ ? threads() - 1 - i : i;
    if (fibers_[size_t(fiber)].is_stopped()) continue;
    resume(fiber);
    ++resumed;
  }
  return resumed;
}

bool Block::is_over() const {
  return std::all_of(fibers_.begin(), fibers_.end(), [](const Fiber& each) { return each.done; });
}

std::string Block::stuck() const {
  int at_block = 0, at_warp = 0, ended = 0;
  for (const Fiber& each : fibers_) {
    if (each.done) {
      ++ended;
    } else {
      ++(is_of_block(each.waits_at) ? at_block : at_warp);
    }
  }
  return "threads wait for each other in " + place() + ": " + std::to_string(at_block) +
         " at a barrier of the block, " + std::to_string(at_warp) + " at one of their warp, " +
         std::to_string(ended) + " have ended";
}

void Block::fail(const char* why) {
  failure_ = std::string(why) + " in " + place() + ", thread " + std::to_string(current_);
  _longjmp(scheduler_, 1);
}

Votes Block::wait_for_all(bool predicate, int name) {
  Barrier& barrier = named(name);
  Votes& votes = barrier.votes[barrier.generation % 2];
  barrier.whole = true;
  ++(predicate ? votes.yes : votes.no);
  wait(barrier, running_);
  return votes;
}

void Block::wait_at(int name, int parties) {
  come_to(named(name), parties);
  wait(named(name), needed_at(named(name)));
}

void Block::arrive_at(int name, int parties) {
  Barrier& barrier = named(name);
  come_to(barrier, parties);
  ++barrier.arrived;
  open_if_all(barrier, needed_at(barrier));
}

void Block::come_to(Barrier& barrier, int parties) {
  barrier.whole = false;
  barrier.parties = parties;
  barrier.came[size_t(current_ / kLanes)] |= 1u << current_ % kLanes;
}

// Arrivals that open it: a warp counts with all its lanes, as the PTX manual says.
int Block::needed_at(const Barrier& barrier) const {
  int ended = 0;
  for (size_t i = 0; i < warps_.size(); ++i) {
    if (barrier.came[i] != 0) ended += __builtin_popcount(~warps_[i].alive & ~barrier.came[i]);
  }
  return barrier.parties - ended;
}

void Block::wait_for_lanes(uint32_t mask) {
  if (!is_named(mask, current_ % kLanes)) fail("a mask of lanes without the caller");
  Exchange& lanes = warp();
  wait(lanes.barriers[mask], __builtin_popcount(mask & lanes.alive));
}

Barrier& Block::named(int name) {
  if (name < 0 || name >= kBarriers) fail("no barrier has this number");
  return named_[size_t(name)];
}

bool Block::is_of_block(const Barrier* barrier) const {
  return std::any_of(named_.begin(), named_.end(), [=](const Barrier& each) { return &each == barrier; });
}

void Block::wait(Barrier& barrier, int parties) {
  Fiber& fiber = fibers_[size_t(current_)];
  fiber.generation = barrier.generation;
  ++barrier.arrived;
  if (open_if_all(barrier, parties)) return;
  fiber.waits_at = &barrier;
  pause();
  fiber.waits_at = nullptr;
}

// Who comes next votes anew: those who came a generation ago have read what was said.
bool Block::open_if_all(Barrier& barrier, int parties) {
  if (barrier.arrived == 0 || barrier.arrived != parties) return false;
  barrier.arrived = 0;
  barrier.came.fill(0);
  ++barrier.generation;
  barrier.votes[barrier.generation % 2] = Votes{};
  return true;
}

}  // namespace simt
