// ranks: 1
// Law: exp and exp - 1 of every kind of number that is not positive are within 2 units in the last
// place of the library's in double; NaN stays; below -87 they are 0 and -1.
#include "espalier/base/exponential.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "mpi_test.hpp"

namespace espalier {
namespace {

/// |x - exact| in units of the last place of float32 at `exact`.
double ulps(float x, double exact) {
  const auto near = static_cast<float>(std::abs(exact));
  const double unit = static_cast<double>(std::nextafter(near, 1e30f)) - static_cast<double>(near);
  return std::abs(static_cast<double>(x) - exact) / unit;
}

TEST(Exponential, IsWithinTwoUnitsOfTheLastPlace) {
  double of_exp = 0, of_expm1 = 0;
  const auto look_at = [&](float x) {
    of_exp = std::max(of_exp, ulps(exp_of_nonpositive(x), std::exp(static_cast<double>(x))));
    of_expm1 = std::max(of_expm1, ulps(expm1_of_nonpositive(x), std::expm1(static_cast<double>(x))));
  };
  for (int k = 0; k <= 2000000; ++k) look_at(-87.0f * static_cast<float>(k) / 2000000.0f);
  for (float x = -1; x < -1e-37f; x *= 0.9993f) look_at(x);
  EXPECT_LE(of_exp, 2);
  EXPECT_LE(of_expm1, 2);
}

TEST(Exponential, EndsAreWhatTheyShouldBe) {
  EXPECT_EQ(exp_of_nonpositive(0.0f), 1.0f);
  EXPECT_EQ(expm1_of_nonpositive(0.0f), 0.0f);
  for (const float x : {-87.01f, -100.0f, -1e30f, -std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(exp_of_nonpositive(x), 0.0f);
    EXPECT_EQ(expm1_of_nonpositive(x), -1.0f);
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(exp_of_nonpositive(nan)));
  EXPECT_TRUE(std::isnan(expm1_of_nonpositive(nan)));
}

}  // namespace
}  // namespace espalier
