// What CUDA C++ adds to the language: qualifiers and vector types. Enough for the kernels' headers to compile
// unchanged with a host compiler. Comes after every standard header, some of which use such names.
#pragma once

#define __CUDACC__
#define __CUDACC_RTC__
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 8
#define __CUDA_ARCH__ (GROUPED_SM * 10)
#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __constant__ static
// Blocks run on one OS thread: its local storage holds these and nothing else, so it can be filled with
// rubbish.
#define __shared__ static thread_local
#define __builtin_assume(condition) static_cast<void>(0)
// Arguments are evaluated, nothing is printed: a report is read from where it would go.
#define printf(...) simt::ignored(__VA_ARGS__)

namespace simt {
template <typename... Arguments>
int ignored(const Arguments&...) {
  return 0;
}
}  // namespace simt

constexpr int warpSize = 32;

#define SIMT_VECTORS(name, element, align2, align4)                                    \
  struct alignas(align2) name##2 { element x, y; };                                    \
  struct name##3 { element x, y, z; };                                                 \
  struct alignas(align4) name##4 { element x, y, z, w; };                              \
  inline name##2 make_##name##2(element x, element y) { return {x, y}; }               \
  inline name##3 make_##name##3(element x, element y, element z) { return {x, y, z}; } \
  inline name##4 make_##name##4(element x, element y, element z, element w) { return {x, y, z, w}; }

SIMT_VECTORS(char, signed char, 2, 4)
SIMT_VECTORS(uchar, unsigned char, 2, 4)
SIMT_VECTORS(short, short, 4, 8)
SIMT_VECTORS(ushort, unsigned short, 4, 8)
SIMT_VECTORS(int, int, 8, 16)
SIMT_VECTORS(uint, unsigned, 8, 16)
SIMT_VECTORS(float, float, 8, 16)
SIMT_VECTORS(longlong, long long, 16, 16)
SIMT_VECTORS(ulonglong, unsigned long long, 16, 16)
SIMT_VECTORS(double, double, 16, 16)

#undef SIMT_VECTORS
