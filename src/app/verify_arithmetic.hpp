// Does this machine compute as IEEE 754 says, one operation at a time? What all results of the
// program stand on, asked at run time of the code that this build has.
#pragma once

#include <span>

namespace espalier {

/// A property of arithmetic, and what is to blame where it is missing.
struct ArithmeticRule {
  const char* name;
  const char* kept;    ///< the words where it holds
  const char* broken;  ///< and where not
  const char* cause;
  bool (*holds)();  ///< on this thread
};

std::span<const ArithmeticRule> arithmetic_rules();

/// Bit k: rule k is broken, on any of so many threads of this process.
unsigned broken_rules(int threads);

}  // namespace espalier
