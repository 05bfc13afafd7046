// The product's kernels, run block by block on the CPU. One library per architecture (GROUPED_SM).
#include <cstdlib>
#include <vector>

#include "cuda/combine.cuh"
#include "cuda/layout.h"
#include "cuda/split.cuh"
#include "simt.h"

namespace grouped {
namespace {

constexpr i32 kSplits = Arch<GROUPED_SM>::splits;

template <i32 Heads, i32 HeadDim, i32 RowTiles>
void split_block(const SplitArguments& arguments, bool reverse) {
  using L = Layout<Heads, HeadDim, RowTiles, GROUPED_SM>;
  // Rubbish that reads as NaN both as codes and as floats.
  const size_t bytes = (size_t(L::bytes) + 15) / 16 * 16;
  u8* memory = static_cast<u8*>(std::aligned_alloc(128, (bytes + 127) / 128 * 128));
  std::memset(memory, 0xFF, bytes);
  simt::Block block(kThreads, [&] { run_split<L>(arguments, memory); }, reverse);
  block.run();
  std::free(memory);
}

template <i32 Heads, i32 HeadDim>
void combine_block(const CombineArguments& arguments, bool reverse) {
  simt::Block block(kThreads, [&] { run_combine<Heads, HeadDim, kSplits>(arguments); }, reverse);
  block.run();
}

struct SplitVariant {
  void (*run)(const SplitArguments&, bool);
  i32 shared_bytes;
};

template <i32 Heads, i32 HeadDim, i32 RowTiles>
constexpr SplitVariant kVariant{split_block<Heads, HeadDim, RowTiles>,
                                Layout<Heads, HeadDim, RowTiles, GROUPED_SM>::bytes};

SplitVariant split_variant(i32 heads, i32 head_dim, i32 rows) {
  static constexpr SplitVariant large[] = {kVariant<6, 256, 1>, kVariant<6, 256, 2>, kVariant<6, 256, 3>};
  static constexpr SplitVariant small[] = {kVariant<3, 64, 1>, kVariant<3, 64, 2>};
  const i32 row_tiles = (rows * heads + kRowTile - 1) / kRowTile;
  return head_dim == 256 ? large[row_tiles - 1] : small[row_tiles - 1];
}

}  // namespace
}  // namespace grouped

extern "C" void simt_split(const grouped::SplitArguments* arguments, int heads, int head_dim, int splits,
                           int reverse) {
  const grouped::SplitVariant variant = grouped::split_variant(heads, head_dim, arguments->rows);
  for (int split = 0; split < splits; ++split) {
    blockIdx = simt::Index{unsigned(split), 0, 0};
    variant.run(*arguments, reverse != 0);
  }
}

extern "C" void simt_combine(const grouped::CombineArguments* arguments, int heads, int head_dim,
                             int reverse) {
  for (int row = 0; row < arguments->rows * heads; ++row) {
    for (int part = 0; part < head_dim / grouped::kCombineDims; ++part) {
      blockIdx = simt::Index{unsigned(row), unsigned(part), 0};
      if (head_dim == 256) {
        grouped::combine_block<6, 256>(*arguments, reverse != 0);
      } else {
        grouped::combine_block<3, 64>(*arguments, reverse != 0);
      }
    }
  }
}

extern "C" int simt_splits() { return grouped::kSplits; }

extern "C" int simt_shared_bytes(int heads, int head_dim, int rows) {
  return grouped::split_variant(heads, head_dim, rows).shared_bytes;
}
