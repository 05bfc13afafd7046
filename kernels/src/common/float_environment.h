// Puts a thread into the arithmetic that docs/arithmetic.md assumes, and the caller's back afterwards.
#pragma once

#include <cfenv>

namespace grouped {

// Round to nearest, subnormals kept: a process may run with FTZ/DAZ or another rounding mode.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&saved_); }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::fenv_t saved_;
};

}  // namespace grouped
