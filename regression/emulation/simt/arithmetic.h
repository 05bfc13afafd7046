// Integer and fp32 functions that NVRTC knows without a header: those whose every bit is documented. Those
// that only promise an error bound (expf, __expf, rsqrtf, __fdividef) can't be had: see device.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace simt {

constexpr uint32_t kNan = 0x7FFFFFFFu;

template <typename To, typename From>
To as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

// A NaN counts only when both are; +0 is larger than -0.
inline float larger_of(float a, float b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) && std::isnan(b) ? as<float>(kNan) : std::isnan(a) ? b : a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
inline float smaller_of(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return larger_of(a, b);
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

// A number without fraction as an integer: what doesn't fit becomes the nearest that does, NaN zero.
template <typename To>
To saturated(float x) {
  constexpr To lowest = std::is_signed_v<To> ? To(1) << (sizeof(To) * 8 - 1) : 0, highest = To(~lowest);
  if (std::isnan(x)) return 0;
  if (x <= float(lowest)) return lowest;
  return x >= float(highest) ? highest : To(x);
}

}  // namespace simt

#define SIMT_EXTREMES(type)                                 \
  inline type max(type a, type b) { return a < b ? b : a; } \
  inline type min(type a, type b) { return b < a ? b : a; }
SIMT_EXTREMES(int)
SIMT_EXTREMES(unsigned)
SIMT_EXTREMES(long)
SIMT_EXTREMES(unsigned long)
SIMT_EXTREMES(long long)
SIMT_EXTREMES(unsigned long long)
#undef SIMT_EXTREMES
inline unsigned max(int a, unsigned b) { return max(unsigned(a), b); }
inline unsigned max(unsigned a, int b) { return max(a, unsigned(b)); }
inline unsigned min(int a, unsigned b) { return min(unsigned(a), b); }
inline unsigned min(unsigned a, int b) { return min(a, unsigned(b)); }
inline float max(float a, float b) { return simt::larger_of(a, b); }
inline float min(float a, float b) { return simt::smaller_of(a, b); }
#define fmaxf simt::larger_of
#define fminf simt::smaller_of

inline unsigned __float_as_uint(float x) { return simt::as<unsigned>(x); }
inline int __float_as_int(float x) { return simt::as<int>(x); }
inline float __uint_as_float(unsigned x) { return simt::as<float>(x); }
inline float __int_as_float(int x) { return simt::as<float>(x); }

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

inline int __float2int_rn(float x) { return simt::saturated<int>(std::nearbyint(x)); }
inline int __float2int_rz(float x) { return simt::saturated<int>(std::trunc(x)); }
inline int __float2int_rd(float x) { return simt::saturated<int>(std::floor(x)); }
inline int __float2int_ru(float x) { return simt::saturated<int>(std::ceil(x)); }
inline unsigned __float2uint_rn(float x) { return simt::saturated<unsigned>(std::nearbyint(x)); }
inline unsigned __float2uint_rz(float x) { return simt::saturated<unsigned>(std::trunc(x)); }
inline float __int2float_rn(int x) { return float(x); }
inline float __uint2float_rn(unsigned x) { return float(x); }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned result = 0;
  for (int i = 0; i < 32; ++i) result |= (x >> i & 1u) << (31 - i);
  return result;
}
inline int __mulhi(int a, int b) { return int((static_cast<long long>(a) * b) >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((uint64_t(a) * b) >> 32); }

// The upper word of high:low shifted left, the lower one of it shifted right; by less than 32, or at most 32.
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  return unsigned(((uint64_t(high) << 32 | low) << (by & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return unsigned((uint64_t(high) << 32 | low) >> (by & 31));
}
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned by) {
  return by >= 32 ? low : __funnelshift_l(low, high, by);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned by) {
  return by >= 32 ? high : __funnelshift_r(low, high, by);
}

inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  const uint64_t bytes = uint64_t(high) << 32 | low;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) result |= unsigned(bytes >> (8 * (selector >> 4 * i & 7)) & 0xFF) << 8 * i;
  return result;
}
