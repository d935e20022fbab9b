// ranks: 1
// Laws: the rules of arithmetic hold here; a thread that rounds upwards, or takes numbers below the
// normal ones for 0, breaks the rule that says so, for as long as it does.
#include "espalier/base/arithmetic_rules.hpp"

#include <gtest/gtest.h>

#include <cfenv>
#include <string>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include "mpi_test.hpp"

namespace espalier {
namespace {

// The names of those that do not hold, on one thread: this one.
std::vector<std::string> broken_here() {
  std::vector<std::string> names;
  const auto kept = arithmetic_rules_kept(1);
  for (std::size_t k = 0; k < kept.size(); ++k)
    if (!kept[k]) names.emplace_back(arithmetic_rules()[k].name);
  return names;
}

TEST(ArithmeticRules, HoldHereOnEveryThread) {
  for (const int threads : {1, 2, 5})
    EXPECT_EQ(arithmetic_rules_kept(threads), std::vector<bool>(arithmetic_rules().size(), true));
}

TEST(ArithmeticRules, RoundingUpwardsIsNamedFirst) {
  std::fesetround(FE_UPWARD);
  const auto broken = broken_here();
  std::fesetround(FE_TONEAREST);
  ASSERT_FALSE(broken.empty());
  EXPECT_EQ(broken[0], "direction of rounding");
  EXPECT_TRUE(broken_here().empty());
}

#ifdef __SSE2__
TEST(ArithmeticRules, FlushingToZeroIsNamed) {
  const auto before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);
  const auto broken = broken_here();
  _mm_setcsr(before);
  EXPECT_EQ(broken, std::vector<std::string>{"numbers below the normal ones"});
  EXPECT_TRUE(broken_here().empty());
}
#endif

}  // namespace
}  // namespace espalier
