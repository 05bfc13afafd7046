// All of CUDA C++ that the emulated GPU knows, in front of the kernels' headers.
#pragma once

#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "simt.h"
// clang-format off: their qualifiers are words that standard headers use.
#include "types.h"
#include "arithmetic.h"
#include "memory.h"
#include "warp.h"
#include "ptx.h"
// clang-format on

// The host's functions of these names give other bits than a GPU's.
#pragma GCC poison expf exp2f exp10f expm1f logf log2f log10f log1pf powf sinf cosf tanf tanhf sinhf coshf
#pragma GCC poison rsqrtf rcbrtf cbrtf erff erfcf hypotf atan2f atanf asinf acosf exp2 expm1 log2 log10 pow
#pragma GCC poison __expf __exp10f __logf __log2f __log10f __powf __sinf __cosf __tanf __tanhf
