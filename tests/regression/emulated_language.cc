// What CUDA C++ adds to the language, on the emulated GPU, held against its definitions. Ends with the number
// of checks that failed.
#include "emulated_checks.h"

namespace {

unsigned value_of(int thread) { return unsigned(thread) * 2654435761u ^ 0x5bd1e995u; }

void shuffles() {
  for (const int width : {2, 8, 16, 32}) {
    bool right = true;
    for (int by = 0; by < 32; ++by) {
      right &= holds(64, [=](int thread) {
        const int lane = thread % 32, first = lane / width * width, last = first + width - 1;
        const auto of = [&](int from) { return value_of(thread - lane + from); };
        const unsigned mine = value_of(thread);
        const unsigned up = __shfl_up_sync(simt::kWarp, mine, unsigned(by), width);
        const unsigned down = __shfl_down_sync(simt::kWarp, mine, unsigned(by), width);
        const unsigned across = __shfl_xor_sync(simt::kWarp, mine, by, width);
        const unsigned from = __shfl_sync(simt::kWarp, mine, by, width);
        return up == of(lane - by < first ? lane : lane - by) &&
               down == of(lane + by > last ? lane : lane + by) &&
               across == of((lane ^ by) > last ? lane : lane ^ by) && from == of(first + by % width);
      });
    }
    check(("shuffles of width " + std::to_string(width)).c_str(), right);
  }
  check("a shuffle of 64 bits", holds(32, [](int thread) {
          return __shfl_xor_sync(simt::kWarp, thread * 0x100000001ll, 1) == (thread ^ 1) * 0x100000001ll;
        }));
  check("halves of a warp on their own", holds(32, [](int thread) {
          const bool low = thread < 16;
          const unsigned mask = low ? 0x0000FFFFu : 0xFFFF0000u;
          int sum = thread;
          for (int by = low ? 8 : 1; low ? by > 0 : by < 16; by = low ? by / 2 : by * 2)
            sum += __shfl_xor_sync(mask, sum, by);
          return sum == (low ? 120 : 376);
        }));
  check("lanes that have ended don't count", holds(32, [](int thread) {
          if (thread >= 16) return true;
          const int other = __shfl_xor_sync(simt::kWarp, thread, 8);
          __syncwarp();
          return other == (thread ^ 8) && __ballot_sync(simt::kWarp, 1) == 0xFFFFu;
        }));
  check("of a lane that takes no part nothing is known", holds(32, [](int thread) {
          return thread >= 16 || __shfl_xor_sync(0xFFFFu, thread, 16) != (thread ^ 16);
        }));
}

void votes() {
  check("votes", holds(64, [](int thread) {
          const unsigned mask = thread % 2 ? 0xAAAAAAAAu : 0x55555555u;
          const bool three = thread % 32 % 3 == 0;
          unsigned wanted = 0;
          for (int i = 0; i < 32; ++i) wanted |= unsigned(i % 3 == 0 && i % 2 == thread % 2) << i;
          return __ballot_sync(mask, three) == wanted && __any_sync(mask, three) &&
                 !__all_sync(mask, three) && __all_sync(mask, 7) && !__any_sync(mask, 0);
        }));
  check("matches", holds(32, [](int thread) {
          int all = 9;
          const unsigned same = __match_any_sync(simt::kWarp, thread / 8);
          const unsigned none = __match_all_sync(simt::kWarp, thread / 31, &all);
          return same == 0xFFu << thread / 8 * 8 && none == 0 && all == 0 &&
                 __match_all_sync(simt::kWarp, 1.5f, &all) == simt::kWarp && all == 1;
        }));
#if GROUPED_SM >= 80
  check("reductions", holds(32, [](int thread) {
          const unsigned low = 0x000000FFu, mask = thread < 8 ? low : ~low;
          const int sum = thread < 8 ? 28 : 468;
          return __reduce_add_sync(mask, thread) == sum &&
                 __reduce_min_sync(mask, -thread) == (thread < 8 ? -7 : -31) &&
                 __reduce_max_sync(mask, unsigned(thread)) == (thread < 8 ? 7u : 31u) &&
                 __reduce_or_sync(mask, 1u << thread) == mask &&
                 __reduce_and_sync(mask, ~(1u << thread)) == ~mask &&
                 __reduce_xor_sync(mask, 1u << thread) == mask;
        }));
#endif
}

void barriers() {
  check("votes of a block, again and again", holds(96, [](int thread) {
          bool right = true;
          for (int round = 0; round < 5; ++round) {
            right &= __syncthreads_count(thread % 5 == round) == (96 - round + 4) / 5;
            right &= __syncthreads_or(thread == round * 17) == 1 && __syncthreads_or(0) == 0;
            right &= __syncthreads_and(thread != round) == 0 && __syncthreads_and(1) == 1;
          }
          return right;
        }));
  static int filled[2];
  check("producers and consumers at barriers with names", holds(128, [](int thread) {
          constexpr int full = 1, empty = 2;
          bool right = true;
          if (thread == 0) filled[0] = filled[1] = -1;
          __syncthreads();
          for (int round = 0; round < 4; ++round) {
            if (thread < 32) {
              if (round > 0) __barrier_sync_count(empty, 128);
              if (thread == 0) filled[0] = round;
              simt::block->arrive_at(full, 128);
            } else {
              __barrier_sync_count(full, 128);
              right &= filled[0] == round;
              if (round < 3) simt::block->arrive_at(empty, 128);
            }
          }
          return right;
        }));
  check("some warps at a barrier, while others have ended", holds(96, [](int thread) {
          if (thread >= 64) return true;
          __barrier_sync_count(3, 64);
          __barrier_sync(4);
          __syncthreads();
          return true;
        }));
  check("lanes that have ended count with their warp", holds(64, [](int thread) {
          if (thread % 32 >= 8 && thread != 63) return true;
          __barrier_sync_count(1, 64);
          return true;
        }));
  check("lanes that have arrived and ended count once", holds(96, [](int thread) {
          if (thread >= 64) {
            if (thread % 2) simt::block->arrive_at(1, 96);
            if (thread % 2 == 0) __barrier_sync_count(1, 96);
            return true;
          }
          if (thread == 7) __nanosleep(1);
          __barrier_sync_count(1, 96);
          return true;
        }));
  check("a barrier that nobody else comes to", ends_with(64, "64 at a barrier of the block", [] {
          __barrier_sync_count(threadIdx.x < 32 ? 1 : 2, 64);
        }));
  check("a barrier that isn't there",
        ends_with(32, "no barrier has this number", [] { __barrier_sync(16); }));
  check("a mask without the caller", ends_with(32, "a mask of lanes without the caller", [] {
          if (threadIdx.x == 5) __syncwarp(0xFu);
        }));
  check("lanes that end are no longer waited for", ends_with(32, "16 at one of their warp", [] {
                                                     if (threadIdx.x < 16)
                                                       __syncwarp();
                                                     else
                                                       __syncwarp(0xFFFF0000u);
                                                   }) == false);
  check("a wait that others end", holds(64, [](int thread) {
          static volatile int flag;
          if (thread == 0) flag = 0;
          __syncthreads();
          if (thread == 40) flag = 1;
          while (flag == 0) __nanosleep(20);
          return clock64() < clock64();
        }));
}

void arithmetic() {
  const float nan = __uint_as_float(0x7FC00000u), infinity = __uint_as_float(0x7F800000u);
  check("extremes", max(-0.0f, 0.0f) == 0.0f && !std::signbit(max(-0.0f, 0.0f)) &&
                        std::signbit(min(0.0f, -0.0f)) && max(nan, 1.0f) == 1.0f && min(2.0f, nan) == 2.0f &&
                        __float_as_uint(fmaxf(nan, nan)) == 0x7FFFFFFFu && max(-1, 1u) == 0xFFFFFFFFu);
  check("float to integer", __float2int_rn(2.5f) == 2 && __float2int_rz(-2.9f) == -2 &&
                                __float2int_rd(-2.1f) == -3 && __float2int_ru(2.1f) == 3 &&
                                __float2int_rn(nan) == 0 && __float2int_rz(infinity) == 0x7FFFFFFF &&
                                __float2int_rz(-3e9f) == int(0x80000000u) && __float2uint_rz(-1.0f) == 0 &&
                                __float2uint_rn(5e9f) == 0xFFFFFFFFu);
  check("bits", __popc(0xF0F0u) == 8 && __popcll(~0ull) == 64 && __clz(1) == 31 && __clz(0) == 32 &&
                    __clz(-1) == 0 && __clzll(1) == 63 && __ffs(0) == 0 && __ffs(8) == 4 &&
                    __ffsll(1ll << 40) == 41 && __brev(1) == 0x80000000u && __mulhi(-1, 1) == -1 &&
                    __umulhi(~0u, ~0u) == 0xFFFFFFFEu);
  check("shifts of two words", __funnelshift_l(0x80000000u, 1u, 1) == 3u &&
                                   __funnelshift_r(0x80000000u, 1u, 1) == 0xC0000000u &&
                                   __funnelshift_l(7u, 9u, 32) == 9u && __funnelshift_r(7u, 9u, 32) == 7u &&
                                   __funnelshift_lc(7u, 9u, 40) == 7u && __funnelshift_rc(7u, 9u, 32) == 9u);
  check("bytes", __byte_perm(0x33221100u, 0x77665544u, 0x5140) == 0x55114400u);
  check("roundings", __fadd_rn(1.0f, 0x1p-24f) == 1.0f && __frcp_rn(3.0f) == 1.0f / 3.0f &&
                         __fsqrt_rn(2.0f) == 0x1.6a09e6p0f &&
                         __fmaf_rn(0x1.000002p0f, 0x1.000002p0f, -0x1.000004p0f) == 0x1p-46f &&
                         __saturatef(nan) == 0.0f);
}

void change(bool& right) {
  static unsigned cell;
  const auto gives = [](unsigned from, unsigned old, unsigned to) { return old == from && cell == to; };
  cell = 5;
  right = right && gives(5, atomicAdd(&cell, 3u), 8) && gives(8, atomicSub(&cell, 1u), 7) &&
          gives(7, atomicMin(&cell, 9u), 7);
  right = right && gives(7, atomicMax(&cell, 9u), 9) && gives(9, atomicInc(&cell, 9u), 0) &&
          gives(0, atomicDec(&cell, 9u), 9);
  right = right && gives(9, atomicCAS(&cell, 8u, 1u), 9) && gives(9, atomicCAS(&cell, 9u, 1u), 1);
  right = right && gives(1, atomicExch(&cell, 6u), 6) && gives(6, atomicAnd(&cell, 3u), 2) &&
          gives(2, atomicOr(&cell, 5u), 7);
  right = right && gives(7, atomicXor(&cell, 2u), 5);
}

void atomics() {
  bool right = true;
  const auto no_error = run(1, [&] { change(right); }).empty();
  check("atomics", right && no_error);
  check("a lock", holds(64, [](int thread) {
          static unsigned lock, count;
          if (thread == 0) lock = count = 0;
          __syncthreads();
          while (atomicCAS(&lock, 0u, 1u) != 0) continue;
          const unsigned mine = count;
          __nanosleep(1);
          count = mine + 1;
          atomicExch(&lock, 0u);
          __syncthreads();
          return count == 64;
        }));
  static unsigned cell;
  check("loads and stores with hints", (__stcs(&cell, 4u), __ldg(&cell) == 4u && __ldcs(&cell) == 4u));
}

}  // namespace

int main() {
  shuffles();
  votes();
  barriers();
  arithmetic();
  atomics();
  return failures;
}
