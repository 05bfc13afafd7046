// Loads and stores with a hint for the caches, atomics, clocks. Threads are switched only where they wait, so
// that a plain read and write are atomic. Who looks again and again lets the others go on.
#pragma once

#include "simt.h"

#define SIMT_LOAD(name)   \
  template <typename T>   \
  T name(const T* from) { \
    return *from;         \
  }
SIMT_LOAD(__ldg)
SIMT_LOAD(__ldca)
SIMT_LOAD(__ldcg)
SIMT_LOAD(__ldcs)
SIMT_LOAD(__ldcv)
SIMT_LOAD(__ldlu)
#undef SIMT_LOAD

namespace simt {

// A parameter that takes part in no deduction: the address says which type it is.
template <typename T>
struct Plain {
  using Type = T;
};
template <typename T>
using As = typename Plain<T>::Type;

// An address in a register, `bytes` further on.
template <typename T>
T* moved(T* address, int bytes) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(address) + uintptr_t(bytes));
}
inline uint32_t moved(uint32_t address, int bytes) { return address + uint32_t(bytes); }
inline unsigned long long moved(unsigned long long address, int bytes) { return address + unsigned(bytes); }

template <typename T, typename Change>
T exchanged(T* address, Change change) {
  block->yield();
  const T old = *address;
  *address = change(old);
  return old;
}

}  // namespace simt

#define SIMT_STORE(name)            \
  template <typename T>             \
  void name(T* to, simt::As<T> x) { \
    *to = x;                        \
  }
SIMT_STORE(__stwb)
SIMT_STORE(__stcg)
SIMT_STORE(__stcs)
SIMT_STORE(__stwt)
#undef SIMT_STORE

#define SIMT_ATOMIC(name, result)                                                       \
  template <typename T>                                                                 \
  T name(T* address, simt::As<T> x) {                                                   \
    return simt::exchanged(address, [=]([[maybe_unused]] T old) { return T(result); }); \
  }                                                                                     \
  template <typename T>                                                                 \
  T name##_block(T* address, simt::As<T> x) {                                           \
    return name(address, x);                                                            \
  }
SIMT_ATOMIC(atomicAdd, old + x)
SIMT_ATOMIC(atomicSub, old - x)
SIMT_ATOMIC(atomicMin, x < old ? x : old)
SIMT_ATOMIC(atomicMax, old < x ? x : old)
SIMT_ATOMIC(atomicAnd, old& x)
SIMT_ATOMIC(atomicOr, old | x)
SIMT_ATOMIC(atomicXor, old ^ x)
SIMT_ATOMIC(atomicExch, x)
SIMT_ATOMIC(atomicInc, old >= x ? 0 : old + 1)
SIMT_ATOMIC(atomicDec, old == 0 || old > x ? x : old - 1)
#undef SIMT_ATOMIC

template <typename T>
T atomicCAS(T* address, simt::As<T> expected, simt::As<T> x) {
  return simt::exchanged(address, [=]([[maybe_unused]] T old) { return old == expected ? x : old; });
}

inline size_t __cvta_generic_to_shared(const void* generic) { return simt::to_shared(generic); }
inline size_t __cvta_generic_to_global(const void* generic) { return reinterpret_cast<size_t>(generic); }

// Time passes with each look at it, and at each the other threads may go on.
inline long long clock64() {
  static long long ticks = 0;
  simt::block->yield();
  return ++ticks;
}
inline void __nanosleep(unsigned) { simt::block->yield(); }

[[noreturn]] inline void __trap() { simt::block->fail("__trap"); }
