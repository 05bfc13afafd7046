// Inline PTX on the emulated GPU, held against the definitions of its manual. Ends with the number of checks
// that failed.
#include "emulated_checks.h"

namespace {

u32 shared_address(const void* generic) { return u32(__cvta_generic_to_shared(generic)); }

void conversions() {
  bool right = true;
  for (u32 i = 0; i < 65536; ++i) {
    const u16 half = u16(i);
    float x;
    u16 back;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(half));
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(back) : "f"(x));
    right &= back == ((half & 0x7FFF) > 0x7C00 ? 0x7FFF : half);
    // Between this and the next larger one lies a tie, which goes to the even one.
    if ((half & 0x7FFF) >= 0x7BFF) continue;
    float next;
    asm("cvt.f32.f16 %0, %1;" : "=f"(next) : "h"(u16(half + 1)));
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(back) : "f"((x + next) / 2));
    right &= back == half + half % 2;
  }
  check("halves and floats", right);
  u32 product, codes;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(0x3C004200u), "r"(0x00013800u));
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(codes) : "h"(u16(0xFFB8)));
  check("pairs of halves", product == 0x00013E00u && codes == 0x7FFFBC00u);
}

void instructions() {
  check("barriers with numbers", holds(64, [](int thread) {
          if (thread < 32) {
            asm volatile("bar.arrive %0, %1;" ::"r"(2), "r"(64) : "memory");
          } else {
            asm volatile("barrier.sync 2, 64;" ::: "memory");
          }
          asm volatile("bar.sync 0;" ::: "memory");
          u32 lane;
          asm("mov.u32 %0, %%laneid;" : "=r"(lane));
          return lane == u32(thread % 32);
        }));
  check("loads and stores", holds(32, [](int thread) {
          __shared__ __align__(16) u32 words[32 * 4];
          const u32 at = shared_address(words + 4 * thread);
          asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(1), "r"(2), "r"(3),
                       "r"(thread));
          __syncwarp();
          u32 x, y;
          asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2+8];"
                       : "=r"(x), "=r"(y)
                       : "l"(words + 4 * (thread ^ 1)));
          u16 narrow;
          asm volatile("ld.shared.u8 %0, [%1];" : "=h"(narrow) : "r"(at + 12));
          return x == 3 && y == u32(thread ^ 1) && narrow == thread;
        }));
  check(
      "a misaligned load", ends_with(32, "a misaligned load", [] {
        __shared__ __align__(16) u32 words[8];
        u32 x, y;
        asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "r"(shared_address(words + 1)));
      }));
  check("matrices, and transposed", holds(32, [](int thread) {
          __shared__ __align__(16) u16 halves[16 * 8];
          for (int i = thread; i < 128; i += 32) halves[i] = u16(i);
          __syncwarp();
          u32 x, y, across, unused;
          const u32 row = shared_address(halves + thread % 16 * 8);
          asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                       : "=r"(x), "=r"(y)
                       : "r"(row));
          asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                       : "=r"(across), "=r"(unused)
                       : "r"(row));
          const u32 first = u32(thread / 4 * 8 + thread % 4 * 2), column = u32(thread % 4 * 16 + thread / 4);
          return x == (first | (first + 1) << 16) && y == x + 0x00400040u &&
                 across == (column | (column + 8) << 16);
        }));
  check("copies arrive when they are waited for", holds(32, [](int thread) {
          static const u32 source[4] = {11, 12, 13, 14};
          __shared__ __align__(16) u32 target[2][32][4];
          for (int i = 0; i < 2; ++i) {
            const u32 read = i == 0 ? 16 : 4;
            asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(
                             shared_address(target[i][thread])),
                         "l"(source), "r"(read));
            asm volatile("cp.async.commit_group;");
          }
          asm volatile("cp.async.wait_group 1;");
          const bool first = target[0][thread][3] == 14 && target[1][thread][0] != 11;
          asm volatile("cp.async.wait_all;");
          return first && target[1][thread][0] == 11 && target[1][thread][1] == 0 &&
                 target[1][thread][3] == 0;
        }));
}

}  // namespace

int main() {
  conversions();
  instructions();
  return failures;
}
