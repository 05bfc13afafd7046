// Stands in for the product's header of the same name: what its instructions do, from the layouts that the
// PTX manual documents and the tensor-core model of docs/arithmetic.md.
#pragma once

#include <deque>
#include <vector>

#include "device.h"
#include "grouped/e4m3.h"
#include "grouped/half.h"
#include "host/tensor_core.h"

namespace grouped {

inline u32 pack(u16 low, u16 high) { return low | u32(high) << 16; }
inline u16 half_of(u32 pair, i32 index) { return u16(pair >> 16 * index); }

inline u32 multiply_halves(u32 a, u32 b) {
  const auto product = [&](i32 i) {
    return half_bits(half_value(half_of(a, i)) * half_value(half_of(b, i)));
  };
  return pack(product(0), product(1));
}

inline u32 convert_e4m3_pair(u16 codes) {
  return pack(e4m3_half_bits(u8(codes)), e4m3_half_bits(u8(codes >> 8)));
}

// lane holds a[i] = A(row, k) and so on; each lane computes its own elements of D from everyone's operands.
inline void mma_m16n8k16(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2], const float (&c)[4]) {
  const uint32_t shown[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  simt::exchange_all(shown, 6, [&](auto& words) {
    const i32 group = simt::lane() >> 2, member = simt::lane() & 3;
    float result[4];
    for (i32 i = 0; i < 4; ++i) {
      const i32 row = group + (i < 2 ? 0 : 8), column = 2 * member + (i & 1);
      u16 left[16], right[16];
      for (i32 k = 0; k < 16; ++k) {
        const auto& holder_a = words[(row % 8) * 4 + (k % 8) / 2];
        const auto& holder_b = words[column * 4 + (k % 8) / 2];
        left[k] = half_of(holder_a[(row >= 8) + 2 * (k >= 8)], k % 2);
        right[k] = half_of(holder_b[4 + (k >= 8)], k % 2);
      }
      result[i] = tensor_core_product(left, right, 16, c[i]);
    }
    std::copy(result, result + 4, d);
    return 0;
  });
}

template <bool RowMajor>
inline void mma_m8n8k4(float (&c)[8], u32 a0, u32 a1, u32 b0, u32 b1) {
  const uint32_t shown[4] = {a0, a1, b0, b1};
  simt::exchange_all(shown, 4, [&](auto& words) {
    const i32 lane = simt::lane(), quad = lane & 12;
    // The lane of this matrix that holds index i of 8 rows (or columns).
    const auto holder = [&](i32 i) { return quad + i % 4 + (i >= 4 ? 16 : 0); };
    for (i32 i = 0; i < 8; ++i) {
      const i32 row = (lane & 1) + (i & 2) + (lane >= 16 ? 4 : 0);
      const i32 column = (i & 4) + (lane & 2) + (i & 1);
      u16 left[4], right[4];
      for (i32 k = 0; k < 4; ++k) {
        left[k] = half_of(words[holder(row)][k / 2], k % 2);
        // Column major: a lane holds 4 k of a column. Row major: 4 columns of a k.
        const i32 at = column % 4, from = quad + k + (column >= 4 ? 16 : 0);
        right[k] = RowMajor ? half_of(words[from][2 + at / 2], at % 2)
                            : half_of(words[holder(column)][2 + k / 2], k % 2);
      }
      c[i] = tensor_core_product(left, right, 4, c[i]);
    }
    return 0;
  });
}

inline void load_matrices(u32 (&x)[4], const u16* row) {
  const uint64_t address = reinterpret_cast<uint64_t>(row);
  const uint32_t shown[2] = {uint32_t(address), uint32_t(address >> 32)};
  simt::exchange_all(shown, 2, [&](auto& words) {
    for (i32 i = 0; i < 4; ++i) {
      const auto& holder = words[8 * i + simt::lane() / 4];
      const u16* from = reinterpret_cast<const u16*>(uint64_t(holder[1]) << 32 | holder[0]);
      if (reinterpret_cast<uint64_t>(from) % 16 != 0) simt::block->fail("a misaligned row of ldmatrix");
      std::memcpy(&x[i], from + 2 * (simt::lane() % 4), sizeof x[i]);
    }
    return 0;
  });
}

// Copies happen as late as they may: at the wait for their group. Until then the target holds rubbish.
struct PendingCopy {
  u8* to;
  const u8* from;
  i32 bytes;
  bool wanted;
};

struct CopyQueue {
  std::vector<PendingCopy> open;
  std::deque<std::vector<PendingCopy>> groups;
};

inline CopyQueue& copy_queue() { return simt::block->of_thread<CopyQueue>(); }

template <i32 Bytes>
inline void copy_async(u8* to, const u8* from, bool wanted) {
  if (reinterpret_cast<uint64_t>(to) % Bytes != 0 || reinterpret_cast<uint64_t>(from) % Bytes != 0)
    simt::block->fail("a misaligned asynchronous copy");
  std::memset(to, 0x7F, Bytes);
  copy_queue().open.push_back({to, from, Bytes, wanted});
}

inline void commit_copies() {
  copy_queue().groups.push_back(std::move(copy_queue().open));
  copy_queue().open.clear();
}

template <i32 Pending>
inline void wait_for_copies() {
  auto& groups = copy_queue().groups;
  for (; groups.size() > size_t(Pending); groups.pop_front()) {
    for (const PendingCopy& copy : groups.front()) {
      if (copy.wanted) {
        std::memcpy(copy.to, copy.from, size_t(copy.bytes));
      } else {
        std::memset(copy.to, 0, size_t(copy.bytes));
      }
    }
  }
}

}  // namespace grouped
