// What threads of a block or a warp do together, as the CUDA C++ programming guide defines it. Lanes that
// have ended don't count. __activemask is missing: what it gives is up to the hardware.
#pragma once

#include <type_traits>

#include "simt.h"
#include "types.h"

inline void __syncthreads() { simt::block->wait_for_all(); }
inline int __syncthreads_count(int predicate) { return simt::block->wait_for_all(predicate != 0).yes; }
inline int __syncthreads_or(int predicate) { return __syncthreads_count(predicate) != 0; }
inline int __syncthreads_and(int predicate) { return simt::block->wait_for_all(predicate != 0).no == 0; }
inline void __barrier_sync(unsigned name) { simt::block->wait_for_all(true, int(name)); }
inline void __barrier_sync_count(unsigned name, unsigned parties) {
  simt::block->wait_at(int(name), int(parties));
}

inline void __syncwarp(unsigned mask = simt::kWarp) { simt::block->wait_for_lanes(mask); }

// Copies are ordinary ones, each made at once, so that there is nothing to order.
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}

namespace simt {

// Values of 4 or 8 bytes, as words.
template <typename T>
struct Words {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "not a type of these");
  static constexpr int count = sizeof(T) / 4;
  uint32_t word[count];

  explicit Words(T value) { std::memcpy(word, &value, sizeof value); }
  explicit Words(const uint32_t* from) { std::copy(from, from + count, word); }
  T value() const {
    T x;
    std::memcpy(&x, word, sizeof x);
    return x;
  }
};

// The lane a shuffle reads from, by the PTX manual; the caller itself where that is outside its segment.
inline int shuffled_up(int lane, int by, int width) {
  return lane - by >= (lane & -width) ? lane - by : lane;
}
inline int shuffled_down(int lane, int by, int width) {
  return lane + by <= (lane | (width - 1)) ? lane + by : lane;
}
inline int shuffled_xor(int lane, int by, int width) {
  return (lane ^ by) <= (lane | (width - 1)) ? lane ^ by : lane;
}
inline int shuffled_to(int lane, int from, int width) { return (lane & -width) | (from & (width - 1)); }

// What that lane showed. Of a lane that takes no part, or has ended, it is undefined: rubbish.
template <typename T>
T shuffle(uint32_t mask, T value, int from) {
  const Words<T> mine(value);
  constexpr uint32_t rubbish[] = {kWarp, kWarp};
  return exchange(mask, mine.word, Words<T>::count, [&](auto& words) {
    const bool there = is_named(mask & block->warp().alive, from);
    return Words<T>(there ? words[from] : rubbish).value();
  });
}

// Lanes of `mask` for which what they showed fulfils `condition`.
template <typename T, typename Condition>
uint32_t lanes_where(uint32_t mask, T value, Condition condition) {
  const Words<T> mine(value);
  return exchange(mask, mine.word, Words<T>::count, [&](auto& words) {
    uint32_t found = 0;
    for (int i = 0; i < kLanes; ++i) {
      if (is_named(mask & block->warp().alive, i) && condition(Words<T>(words[i]).value())) found |= 1u << i;
    }
    return found;
  });
}

template <typename T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// All values of the lanes of `mask`, put together.
template <typename T, typename Operation>
T reduce(uint32_t mask, T value, Operation operation) {
  T result = value;
  bool first = true;
  lanes_where(mask, value, [&](T each) {
    result = first ? each : operation(result, each);
    first = false;
    return true;
  });
  return result;
}

}  // namespace simt

template <typename T>
T __shfl_sync(unsigned mask, T x, int from, int width = warpSize) {
  return simt::shuffle(mask, x, simt::shuffled_to(simt::lane(), from & 31, width));
}
template <typename T>
T __shfl_up_sync(unsigned mask, T x, unsigned by, int width = warpSize) {
  return simt::shuffle(mask, x, simt::shuffled_up(simt::lane(), int(by & 31), width));
}
template <typename T>
T __shfl_down_sync(unsigned mask, T x, unsigned by, int width = warpSize) {
  return simt::shuffle(mask, x, simt::shuffled_down(simt::lane(), int(by & 31), width));
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T x, int by, int width = warpSize) {
  return simt::shuffle(mask, x, simt::shuffled_xor(simt::lane(), by & 31, width));
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return simt::lanes_where(mask, predicate, [](int each) { return each != 0; });
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }

template <typename T>
unsigned __match_any_sync(unsigned mask, T value) {
  return simt::lanes_where(mask, value, [=](T each) { return simt::same_bits(each, value); });
}
template <typename T>
unsigned __match_all_sync(unsigned mask, T value, int* all) {
  const unsigned same = __match_any_sync(mask, value);
  *all = same == __ballot_sync(mask, 1);
  return *all ? same : 0;
}

#if GROUPED_SM >= 80
template <typename T>
T __reduce_add_sync(unsigned mask, T x) {
  return T(simt::reduce(mask, unsigned(x), [](unsigned a, unsigned b) { return a + b; }));
}
template <typename T>
T __reduce_min_sync(unsigned mask, T x) {
  return simt::reduce(mask, x, [](T a, T b) { return a < b ? a : b; });
}
template <typename T>
T __reduce_max_sync(unsigned mask, T x) {
  return simt::reduce(mask, x, [](T a, T b) { return a < b ? b : a; });
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned x) {
  return simt::reduce(mask, x, [](unsigned a, unsigned b) { return a & b; });
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned x) {
  return simt::reduce(mask, x, [](unsigned a, unsigned b) { return a | b; });
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned x) {
  return simt::reduce(mask, x, [](unsigned a, unsigned b) { return a ^ b; });
}
#endif
