// PTX instructions, by the layouts that the PTX manual documents and the tensor-core model of
// docs/arithmetic.md. assembly.py puts calls of these where a source has inline assembly: results first, then
// operands, all in the order of the text.
#pragma once

#include "arithmetic.h"
#include "simt.h"

namespace simt::ptx {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned;

// The model of the architecture (grid.cc): sum of `count` products of fp16, and c.
float tensor_core(const u16* a, const u16* b, int count, float c);

inline u32 pack(u32 low, u32 high) { return low | high << 16; }
inline u16 half_of(u32 pair, int index) { return u16(pair >> 16 * index); }

// Exact, subnormals kept.
inline float half_to_float(u16 half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  if (exponent == 31 && fraction != 0) return as<float>(kNan);
  const float magnitude = exponent == 31 ? HUGE_VALF
                          : exponent     ? std::ldexp(float(fraction | 1024), exponent - 25)
                                         : std::ldexp(float(fraction), -24);
  return half >> 15 ? -magnitude : magnitude;
}

// To nearest, ties to even, subnormals kept; a NaN becomes the canonical one.
inline u16 float_to_half(float x) {
  if (std::isnan(x)) return 0x7FFF;
  const u16 sign = std::signbit(x) ? 0x8000 : 0;
  const double magnitude = std::fabs(double(x));
  if (magnitude >= 65520.0) return sign | 0x7C00;
  // The unit of the last place; units as an integer are the bits, less those of the exponent.
  const int exponent = magnitude < 0x1p-14 ? -14 : std::ilogb(magnitude);
  const int units = int(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  return u16(sign | ((exponent + 14) * 1024 + units));
}

inline void mul_f16x2(u32& d, u32 a, u32 b) {
  const auto product = [=](int i) {
    return float_to_half(half_to_float(half_of(a, i)) * half_to_float(half_of(b, i)));
  };
  d = pack(product(0), product(1));
}
inline void cvt_f16_f32(u16& d, float x) { d = float_to_half(x); }
inline void cvt_f32_f16(float& d, u16 x) { d = half_to_float(x); }

inline u16 e4m3_to_half(u8 code) {
  const int exponent = code >> 3 & 15, fraction = code & 7;
  if (exponent == 15 && fraction == 7) return 0x7FFF;
  const float magnitude =
      exponent ? std::ldexp(float(fraction | 8), exponent - 10) : std::ldexp(float(fraction), -9);
  return float_to_half(code >> 7 ? -magnitude : magnitude);
}
inline void cvt_f16x2_e4m3x2(u32& d, u16 codes) {
  d = pack(e4m3_to_half(u8(codes)), e4m3_to_half(u8(codes >> 8)));
}

// lane holds a[i] = A(row, k) and so on; each lane computes its own elements of D from everyone's operands.
inline void mma_m16n8k16(float& d0, float& d1, float& d2, float& d3, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0,
                         u32 b1, float c0, float c1, float c2, float c3) {
  const uint32_t shown[6] = {a0, a1, a2, a3, b0, b1};
  const float c[4] = {c0, c1, c2, c3};
  float* const d[4] = {&d0, &d1, &d2, &d3};
  exchange_all(shown, 6, [&](auto& words) {
    const int group = lane() >> 2, member = lane() & 3;
    for (int i = 0; i < 4; ++i) {
      const int row = group + (i < 2 ? 0 : 8), column = 2 * member + (i & 1);
      u16 left[16], right[16];
      for (int k = 0; k < 16; ++k) {
        const auto& holder_a = words[(row % 8) * 4 + (k % 8) / 2];
        const auto& holder_b = words[column * 4 + (k % 8) / 2];
        left[k] = half_of(holder_a[(row >= 8) + 2 * (k >= 8)], k % 2);
        right[k] = half_of(holder_b[4 + (k >= 8)], k % 2);
      }
      *d[i] = tensor_core(left, right, 16, c[i]);
    }
    return 0;
  });
}

template <bool RowMajor>
void mma_m8n8k4(float& d0, float& d1, float& d2, float& d3, float& d4, float& d5, float& d6, float& d7,
                u32 a0, u32 a1, u32 b0, u32 b1, float c0, float c1, float c2, float c3, float c4, float c5,
                float c6, float c7) {
  const uint32_t shown[4] = {a0, a1, b0, b1};
  const float c[8] = {c0, c1, c2, c3, c4, c5, c6, c7};
  float* const d[8] = {&d0, &d1, &d2, &d3, &d4, &d5, &d6, &d7};
  exchange_all(shown, 4, [&](auto& words) {
    const int quad = lane() & 12;
    // The lane of this matrix that holds index i of 8 rows (or columns).
    const auto holder = [&](int i) { return quad + i % 4 + (i >= 4 ? 16 : 0); };
    for (int i = 0; i < 8; ++i) {
      const int row = (lane() & 1) + (i & 2) + (lane() >= 16 ? 4 : 0);
      const int column = (i & 4) + (lane() & 2) + (i & 1);
      u16 left[4], right[4];
      for (int k = 0; k < 4; ++k) {
        left[k] = half_of(words[holder(row)][k / 2], k % 2);
        // Column major: a lane holds 4 k of a column. Row major: 4 columns of a k.
        const int at = column % 4, from = quad + k + (column >= 4 ? 16 : 0);
        right[k] = RowMajor ? half_of(words[from][2 + at / 2], at % 2)
                            : half_of(words[holder(column)][2 + k / 2], k % 2);
      }
      *d[i] = tensor_core(left, right, 4, c[i]);
    }
    return 0;
  });
}

// 8 by 8 matrices of halves, as many as there are registers; lane 8 i + r names row r of matrix i.
template <bool Transposed, typename... Registers>
void ldmatrix(u32 address, Registers&... registers) {
  exchange_all(&address, 1, [&](auto& words) {
    int first = 0;
    const auto element = [&](int row, int column) {
      const u8* const from = from_shared(words[first + row][0]);
      if (reinterpret_cast<uintptr_t>(from) % 16 != 0) block->fail("a misaligned row of ldmatrix");
      u16 half;
      std::memcpy(&half, from + 2 * column, sizeof half);
      return half;
    };
    const auto load = [&](u32& x) {
      const int group = lane() / 4, pair = 2 * (lane() % 4);
      x = Transposed ? pack(element(pair, group), element(pair + 1, group))
                     : pack(element(group, pair), element(group, pair + 1));
      first += 8;
    };
    (load(registers), ...);
    return 0;
  });
}

// Copies happen as late as they may: at the wait for their group. Until then the target holds rubbish.
struct PendingCopy {
  u8* to;
  const u8* from;
  u32 bytes, read;
};

struct CopyQueue {
  std::vector<PendingCopy> open;
  std::deque<std::vector<PendingCopy>> groups;
};

inline CopyQueue& copy_queue() { return block->of_thread<CopyQueue>(); }

template <typename T>
void cp_async(u32 address, const T* source, u32 bytes, u32 read) {
  u8* const to = from_shared(address);
  const u8* const from = reinterpret_cast<const u8*>(source);
  if (address % bytes != 0 || reinterpret_cast<uintptr_t>(from) % bytes != 0)
    block->fail("a misaligned asynchronous copy");
  if (read > bytes) block->fail("an asynchronous copy that reads more than it writes");
  std::memset(to, 0x7F, bytes);
  copy_queue().open.push_back({to, from, bytes, read});
}
template <typename T>
void cp_async(u32 address, const T* from, u32 bytes) {
  cp_async(address, from, bytes, bytes);
}

inline void cp_async_commit() {
  copy_queue().groups.push_back(std::move(copy_queue().open));
  copy_queue().open.clear();
}

inline void cp_async_wait(unsigned pending) {
  auto& groups = copy_queue().groups;
  for (; groups.size() > pending; groups.pop_front()) {
    for (const PendingCopy& copy : groups.front()) {
      std::memcpy(copy.to, copy.from, copy.read);
      std::memset(copy.to + copy.read, 0, copy.bytes - copy.read);
    }
  }
}

inline void cp_async_wait_all() {
  cp_async_commit();
  cp_async_wait(0);
}

inline void bar_sync(u32 name) { block->wait_for_all(true, int(name)); }
inline void bar_sync(u32 name, u32 parties) { block->wait_at(int(name), int(parties)); }
inline void bar_arrive(u32 name, u32 parties) { block->arrive_at(int(name), int(parties)); }

// One element between memory and a register, which may be wider.
template <typename Element, typename Register>
void to_register(Register& x, const u8* from) {
  Element element;
  std::memcpy(&element, from, sizeof element);
  if constexpr (sizeof(Register) == sizeof(Element)) {
    std::memcpy(&x, &element, sizeof x);
  } else {
    x = Register(element);
  }
}

inline u8* address_of(u32 shared) { return from_shared(shared); }
template <typename T>
u8* address_of(T* generic) {
  return const_cast<u8*>(reinterpret_cast<const u8*>(generic));
}
inline u8* address_of(unsigned long long generic) { return reinterpret_cast<u8*>(generic); }
inline u8* address_of(unsigned long generic) { return reinterpret_cast<u8*>(generic); }

template <typename Element, typename Address, typename... Registers>
void ld(Address address, Registers&... registers) {
  const u8* from = address_of(address);
  if (reinterpret_cast<uintptr_t>(from) % (sizeof(Element) * sizeof...(registers)) != 0)
    block->fail("a misaligned load");
  ((to_register<Element>(registers, from), from += sizeof(Element)), ...);
}

template <typename Element, typename Address, typename... Registers>
void st(Address address, Registers... registers) {
  u8* to = address_of(address);
  if (reinterpret_cast<uintptr_t>(to) % (sizeof(Element) * sizeof...(registers)) != 0)
    block->fail("a misaligned store");
  ((std::memcpy(to, &registers, sizeof(Element)), to += sizeof(Element)), ...);
}

inline void laneid(u32& x) { x = u32(lane()); }
template <typename... Operands>
void nothing(Operands...) {}

}  // namespace simt::ptx
