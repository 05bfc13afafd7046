// The tensor-core model on vectors: one group's products for up to 32 columns at once.
//
// The fp32 product of two halves is exact. Adding (F - e_max) to its exponent field makes the truncating
// conversion to an integer the model's own truncation; the integers are summed exactly and converted back
// rounding toward zero. That holds inside this kernel's chains only, where c is 0 or at least 2^-53 and one
// operand is an E4M3 value: the integer sum fits 32 bits, and the exponent field can't overflow.
#pragma once

#include "host/call.h"
#include "host/tensor_core.h"

namespace grouped {
namespace GROUPED_ISA {
namespace {

constexpr i32 kVectorLanes = 8;
constexpr i32 kBlock = 32;  // columns of one register of exponents

using Floats = float __attribute__((vector_size(32)));
using Ints = i32 __attribute__((vector_size(32)));
using Bytes = i8 __attribute__((vector_size(32)));
using FewCodes = u8 __attribute__((vector_size(8)));

template <typename T>
GROUPED_HD T load(const void* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
GROUPED_HD void store(void* to, T value) {
  __builtin_memcpy(to, &value, sizeof value);
}

GROUPED_HD Ints as_ints(Floats x) { return reinterpret_cast<Ints>(x); }
GROUPED_HD Floats as_floats(Ints x) { return reinterpret_cast<Floats>(x); }
GROUPED_HD Ints truncated(Floats x) { return __builtin_convertvector(x, Ints); }

// A column operand (one value per column) and a scalar operand (one for all columns), along k.
struct Operands {
  const float* column;
  const i8* column_exponent;
  i64 column_stride;
  const float* scalar;
  const i8* scalar_exponent;
  i64 scalar_stride;

  GROUPED_HD Operands advanced(i32 k) const {
    return Operands{column + k * column_stride, column_exponent + k * column_stride, column_stride,
                    scalar + k * scalar_stride, scalar_exponent + k * scalar_stride, scalar_stride};
  }
};

// Exponents of the products' largest term per column. Zero operands carry kZeroExponent, which never wins.
GROUPED_HD Bytes largest_exponents(const Operands& x) {
  Bytes result = Bytes{} + i8(kZeroExponent);
  for (i32 k = 0; k < CurrentArch::group_length; ++k) {
    const Bytes sum =
        load<Bytes>(x.column_exponent + k * x.column_stride) + x.scalar_exponent[k * x.scalar_stride];
    result = sum > result ? sum : result;
  }
  return result;
}

// The exponents of columns 8 v to 8 v + 7, which lie in byte v of each 32 bits: see exponent_position.
GROUPED_HD Ints exponents_of_vector(Bytes exponents, i32 v) {
  return (reinterpret_cast<Ints>(exponents) << (24 - 8 * v)) >> 24;
}

// c[v] = group_product(c[v], ...) for V vectors of columns. Needs rounding toward zero.
template <i32 V>
GROUPED_HD void accumulate_group(const Operands& x, bool c_is_zero, Floats* c) {
  const Bytes largest = largest_exponents(x);
  Ints shift[V], sum[V];
  for (i32 v = 0; v < V; ++v) {
    Ints exponent = exponents_of_vector(largest, v);
    if (!c_is_zero) {
      const Ints c_exponent = ((as_ints(c[v]) >> 23) & 255) - 127;
      exponent = c_exponent > exponent ? c_exponent : exponent;
    }
    shift[v] = (CurrentArch::fraction_bits - exponent) << 23;
    sum[v] = c_is_zero ? Ints{} : truncated(as_floats(as_ints(c[v]) + shift[v]));
  }
  for (i32 k = 0; k < CurrentArch::group_length; ++k) {
    const float scalar = x.scalar[k * x.scalar_stride];
    for (i32 v = 0; v < V; ++v) {
      const Floats product = load<Floats>(x.column + k * x.column_stride + v * kVectorLanes) * scalar;
      sum[v] += truncated(as_floats(as_ints(product) + shift[v]));
    }
  }
  for (i32 v = 0; v < V; ++v) {
    c[v] = __builtin_convertvector(sum[v], Floats) * as_floats((127 << 23) - shift[v]);
  }
}

// One step of K = 16.
template <i32 V>
GROUPED_HD void accumulate_step(const Operands& x, bool c_is_zero, Floats* c) {
  accumulate_group<V>(x, c_is_zero, c);
  for (i32 k = CurrentArch::group_length; k < kStepLength; k += CurrentArch::group_length) {
    accumulate_group<V>(x.advanced(k), false, c);
  }
}

}  // namespace
}  // namespace GROUPED_ISA
}  // namespace grouped
