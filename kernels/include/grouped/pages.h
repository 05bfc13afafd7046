// Where a token's bytes are. Offsets are 64-bit: page ids times strides pass 2^32 bytes.
#pragma once

#include "grouped/platform.h"

namespace grouped {

constexpr i32 kSmallestPage = 16;
constexpr i32 kLargestPage = 3456;
constexpr i32 kPageMultiple = 16;
constexpr i64 kLargestCapacity = i64(1) << 30;

GROUPED_HD bool page_is_supported(i64 page) {
  return page >= kSmallestPage && page <= kLargestPage && page % kPageMultiple == 0;
}

struct CacheStrides {
  i64 block_bytes;
  i64 token_bytes;
};

// Only for tokens below the longest live length: later block-table entries may be anything.
GROUPED_HD i64 token_offset(const i32* block_table, i32 page, CacheStrides strides, i32 token) {
  const i64 block = block_table[token / page];
  return block * strides.block_bytes + i64(token % page) * strides.token_bytes;
}

}  // namespace grouped
