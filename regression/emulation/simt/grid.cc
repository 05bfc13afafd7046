// The product's kernels, run block by block on the CPU. One library per architecture (GROUPED_SM).
#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>
#include <vector>

#include "cuda/combine.cuh"
#include "cuda/layout.h"
#include "cuda/split.cuh"
#include "host/tensor_core.h"

float simt::ptx::tensor_core(const u16* a, const u16* b, int count, float c) {
  return grouped::tensor_core_product(a, b, count, c);
}

// One call, as regression/emulation/emulator.py fills it.
struct SimtCall {
  const void *q, *k, *v;
  const int *block_table, *row_lens;
  float *acc, *max_sum;
  void* out;
  long long k_block, k_token, v_block, v_token;
  int heads, head_dim, rows, page, capacity, acc_rows;
  float score_scale, v_scale;
  int wide_query, wide_loads, write_unused, reverse;
};

namespace grouped {
namespace {

constexpr i32 kSplits = Arch<GROUPED_SM>::splits;

// A block's dynamic memory, full of what reads as NaN both as codes and as floats. It ends where the next
// page can't be touched.
class SharedMemory {
 public:
  explicit SharedMemory(size_t bytes) {
    const size_t page = size_t(sysconf(_SC_PAGESIZE)), room = (bytes + page - 1) / page * page;
    mapped_ = room + page;
    void* const base = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) throw std::runtime_error("no memory for a block");
    base_ = static_cast<u8*>(base);
    mprotect(base_ + room, page, PROT_NONE);
    memory = base_ + (room - bytes) / 16 * 16;
    bytes_ = bytes;
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() { munmap(base_, mapped_); }

  void poison() { std::memset(memory, 0xFF, bytes_); }

  u8* memory;

 private:
  u8* base_;
  size_t mapped_, bytes_;
};

template <i32 Heads, i32 HeadDim, i32 RowTiles>
void split_blocks(const SplitArguments& arguments, bool reverse) {
  using L = Layout<Heads, HeadDim, RowTiles, GROUPED_SM>;
  SharedMemory shared(size_t(L::bytes));
  simt::give_shared(shared.memory);
  for (i32 split = 0; split < kSplits; ++split) {
    simt::announce("split", {unsigned(split), 0, 0}, {unsigned(kSplits), 1, 1});
    shared.poison();
    simt::Block block(kThreads, [&] { run_split<L>(arguments, shared.memory); }, reverse);
    block.run();
  }
}

template <i32 Heads, i32 HeadDim>
void combine_blocks(const CombineArguments& arguments, bool reverse) {
  const simt::Index grid{unsigned(arguments.rows * Heads), unsigned(HeadDim / kCombineDims), 1};
  for (unsigned row = 0; row < grid.x; ++row) {
    for (unsigned part = 0; part < grid.y; ++part) {
      simt::announce("combine", {row, part, 0}, grid);
      simt::Block block(kThreads, [&] { run_combine<Heads, HeadDim, kSplits>(arguments); }, reverse);
      block.run();
    }
  }
}

struct SplitVariant {
  void (*run)(const SplitArguments&, bool);
  i32 shared_bytes;
};

template <i32 Heads, i32 HeadDim, i32 RowTiles>
constexpr SplitVariant kVariant{split_blocks<Heads, HeadDim, RowTiles>,
                                Layout<Heads, HeadDim, RowTiles, GROUPED_SM>::bytes};

SplitVariant split_variant(i32 heads, i32 head_dim, i32 rows) {
  static constexpr SplitVariant large[] = {kVariant<6, 256, 1>, kVariant<6, 256, 2>, kVariant<6, 256, 3>};
  static constexpr SplitVariant small[] = {kVariant<3, 64, 1>, kVariant<3, 64, 2>};
  const i32 row_tiles = (rows * heads + kRowTile - 1) / kRowTile;
  return head_dim == 256 ? large[row_tiles - 1] : small[row_tiles - 1];
}

SplitArguments split_arguments(const SimtCall& call) {
  SplitArguments a{};
  a.q = static_cast<const u16*>(call.q);
  a.k = static_cast<const u8*>(call.k), a.v = static_cast<const u8*>(call.v);
  a.block_table = call.block_table, a.row_lens = call.row_lens;
  a.acc = call.acc, a.max_sum = call.max_sum;
  a.k_strides = CacheStrides{call.k_block, call.k_token},
  a.v_strides = CacheStrides{call.v_block, call.v_token};
  a.rows = call.rows, a.page = call.page, a.capacity = call.capacity, a.acc_rows = call.acc_rows;
  a.score_scale = call.score_scale, a.v_scale = call.v_scale;
  a.wide_query = call.wide_query, a.wide_loads = call.wide_loads, a.write_unused = call.write_unused;
  return a;
}

CombineArguments combine_arguments(const SimtCall& call) {
  CombineArguments a{};
  a.acc = call.acc, a.max_sum = call.max_sum, a.row_lens = call.row_lens;
  a.out = static_cast<u16*>(call.out);
  a.rows = call.rows, a.capacity = call.capacity, a.acc_rows = call.acc_rows;
  return a;
}

void run_call(const SimtCall& call) {
  const bool reverse = call.reverse != 0;
  split_variant(call.heads, call.head_dim, call.rows).run(split_arguments(call), reverse);
  if (call.head_dim == 256) {
    combine_blocks<6, 256>(combine_arguments(call), reverse);
  } else {
    combine_blocks<3, 64>(combine_arguments(call), reverse);
  }
}

}  // namespace
}  // namespace grouped

// Splits, then combines. Returns what went wrong in a thread, or null.
extern "C" const char* simt_run(const SimtCall* call) {
  static std::string message;
  try {
    grouped::run_call(*call);
  } catch (const std::runtime_error& error) {
    message = error.what();
    return message.c_str();
  }
  return nullptr;
}

extern "C" void simt_watch_signals() { simt::watch_signals(); }
extern "C" int simt_call_bytes() { return int(sizeof(SimtCall)); }
extern "C" int simt_arch() { return GROUPED_SM; }
extern "C" int simt_knows_launch() { return GROUPED_LAUNCH_KNOWN; }
extern "C" int simt_splits() { return grouped::kSplits; }
extern "C" int simt_shared_bytes(int heads, int head_dim, int rows) {
  return grouped::split_variant(heads, head_dim, rows).shared_bytes;
}
