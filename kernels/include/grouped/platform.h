// What differs between a host compiler and NVRTC: function attributes, integer names, bit casts.
#pragma once

#if defined(__CUDACC__)
#define GROUPED_HD __host__ __device__ __forceinline__
#else
#define GROUPED_HD inline __attribute__((always_inline))
#endif

namespace grouped {

// NVRTC is run without any standard header, so the fixed-width names are our own.
using u8 = unsigned char;
using i8 = signed char;
using u16 = unsigned short;
using u32 = unsigned int;
using i32 = int;
using i64 = long long;
using u64 = unsigned long long;
static_assert(sizeof(u16) == 2 && sizeof(u32) == 4 && sizeof(i64) == 8, "unexpected integer widths");

GROUPED_HD u32 float_bits(float x) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(x);
#else
  u32 bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
#endif
}

GROUPED_HD float bits_float(u32 bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
#endif
}

}  // namespace grouped
