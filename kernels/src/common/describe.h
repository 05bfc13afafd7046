// What a library says about itself, as JSON.
#pragma once

#include <string>

#include "grouped/arch.h"

namespace grouped {

// `kernels` is a JSON object for GPU libraries, empty for others.
inline std::string describe(const char* backend, i32 sm, i32 splits, const std::string& kernels = "") {
  return std::string("{\"backend\": \"") + backend + "\", \"arch\": \"sm_" + std::to_string(sm) +
         "\", \"splits\": " + std::to_string(splits) +
         ", \"precision_version\": " + std::to_string(kPrecisionVersion) +
         ", \"instances\": [[6, 256], [3, 64]]" + (kernels.empty() ? "" : ", \"kernels\": " + kernels) + "}";
}

}  // namespace grouped
