// The instructions that C++ has no name for.
#pragma once

#include "grouped/platform.h"

namespace grouped {

// Two fp16 products, each rounded to nearest, subnormals kept.
__device__ __forceinline__ u32 multiply_halves(u32 a, u32 b) {
  u32 product;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
  return product;
}

#if GROUPED_SM >= 89
// Two E4M3 codes as fp16; a NaN code gives NaN.
__device__ __forceinline__ u32 convert_e4m3_pair(u16 codes) {
  u32 pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(codes));
  return pair;
}
#endif

#if GROUPED_SM >= 80

// d = a b + c for 16 rows, 8 columns, 16 k.
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2],
                                             const float (&c)[4]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]),
        "f"(c[3]));
}

// Four 8 by 8 matrices of halves; lane i names row i % 8 of matrix i / 8.
__device__ __forceinline__ void load_matrices(u32 (&x)[4], const u16* row) {
  const u32 address = static_cast<u32>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
               : "r"(address)
               : "memory");
}

// Copies Bytes (8 or 16) to shared memory; writes zeros, and reads nothing, unless `wanted`.
template <i32 Bytes>
__device__ __forceinline__ void copy_async(u8* to, const u8* from, bool wanted) {
  const u32 address = static_cast<u32>(__cvta_generic_to_shared(to));
  const u32 read = wanted ? Bytes : 0;
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(read)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(address), "l"(from), "r"(read)
                 : "memory");
  }
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// All but the last Pending groups of this thread have arrived.
template <i32 Pending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

#else

// Four times c += a b, each for 8 rows, 8 columns, 4 k. `RowMajor`: of b.
template <bool RowMajor>
__device__ __forceinline__ void mma_m8n8k4(float (&c)[8], u32 a0, u32 a1, u32 b0, u32 b1) {
  if constexpr (RowMajor) {
    asm("mma.sync.aligned.m8n8k4.row.row.f32.f16.f16.f32 "
        "{%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9}, {%10, %11}, {%0, %1, %2, %3, %4, %5, %6, %7};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7])
        : "r"(a0), "r"(a1), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9}, {%10, %11}, {%0, %1, %2, %3, %4, %5, %6, %7};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7])
        : "r"(a0), "r"(a1), "r"(b0), "r"(b1));
  }
}

#endif

}  // namespace grouped
