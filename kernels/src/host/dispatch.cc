#include "host/dispatch.h"

#include <tvm/ffi/error.h>

#include <cstdlib>
#include <string>

#include "host/combine.h"
#include "host/split_scalar.h"
#include "host/split_vector.h"

namespace grouped {
namespace {

const Implementation kScalar{"scalar", compute_split_scalar, baseline::combine_lane};
const Implementation kBaseline{"baseline", baseline::compute_split, baseline::combine_lane};
#if defined(GROUPED_HAS_V3)
const Implementation kV3{"x86-64-v3", v3::compute_split, v3::combine_lane};

bool has_v3() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}

const Implementation* find_v3() { return has_v3() ? &kV3 : nullptr; }
#else
const Implementation* find_v3() { return nullptr; }
#endif

const Implementation* find(const std::string& name) {
  if (name.empty()) return find_v3() ? find_v3() : &kBaseline;
  if (name == kScalar.name) return &kScalar;
  if (name == kBaseline.name) return &kBaseline;
  return name == "x86-64-v3" ? find_v3() : nullptr;
}

std::string requested() {
  const char* name = std::getenv("GROUPED_ATTENTION_CPU");
  return name ? name : "";
}

// Read while the library is loaded, so that a later change of the environment can't mix implementations.
const std::string kRequested = requested();
const Implementation* const kChosen = find(kRequested);

}  // namespace

const Implementation& implementation() {
  if (kChosen == nullptr) {
    TVM_FFI_THROW(RuntimeError) << "GROUPED_ATTENTION_CPU=" << kRequested
                                << " can't be used: choose scalar, baseline or, on a processor that has it, "
                                   "x86-64-v3; or unset it";
  }
  return *kChosen;
}

}  // namespace grouped
