// Does this machine compute as IEEE 754 says, one operation at a time? What all results of the
// program stand on, asked at run time of the code that this build has.
//
// Each rule is a function of numbers that are read from volatile memory and computed with in
// functions that are not inlined, so that the compiler can neither know what comes out nor see the
// question: with -ffast-math it would answer "always" to x == x.
#pragma once

#include <span>
#include <vector>

namespace espalier {

/// A property of arithmetic, and what is to blame where it is missing.
struct ArithmeticRule {
  const char* name;
  const char* kept;    ///< the words where it holds
  const char* broken;  ///< and where not
  const char* cause;
  bool (*holds)();  ///< on this thread
};

/// The first that is broken names the cause: others may follow from it.
std::span<const ArithmeticRule> arithmetic_rules();

/// Which of them hold on all of so many threads of this process.
std::vector<bool> arithmetic_rules_kept(int threads);

}  // namespace espalier
