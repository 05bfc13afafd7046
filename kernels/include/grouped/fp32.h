// fp32 operations, each one correctly rounded (nearest, ties to even) and never contracted.
// The host side relies on -ffp-contract=off; subnormals are kept on both sides.
#pragma once

#include "grouped/platform.h"

namespace grouped {

#if defined(__CUDA_ARCH__)
GROUPED_HD float add(float a, float b) { return __fadd_rn(a, b); }
GROUPED_HD float sub(float a, float b) { return __fsub_rn(a, b); }
GROUPED_HD float mul(float a, float b) { return __fmul_rn(a, b); }
GROUPED_HD float div(float a, float b) { return __fdiv_rn(a, b); }
GROUPED_HD float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
#else
GROUPED_HD float add(float a, float b) { return a + b; }
GROUPED_HD float sub(float a, float b) { return a - b; }
GROUPED_HD float mul(float a, float b) { return a * b; }
GROUPED_HD float div(float a, float b) { return a / b; }
GROUPED_HD float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#endif

GROUPED_HD float negative_infinity() { return bits_float(0xFF800000u); }

}  // namespace grouped
