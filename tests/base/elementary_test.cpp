// ranks: 1
// Laws: exponentials of every kind of number that is not positive, logarithms, sines, cosines and
// powers are as
// near to the exact result as their header says, which long double tells; NaN stays; the ends are
// what they should be.
#include "espalier/base/elementary.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "mpi_test.hpp"

namespace espalier {
namespace {

/// |x - exact| in units of the last place of T at `exact`.
template <class T>
double ulps(T x, long double exact) {
  const auto near = static_cast<T>(std::abs(exact));
  const auto unit = static_cast<long double>(std::nextafter(near, std::numeric_limits<T>::max())) -
                    static_cast<long double>(near);
  return static_cast<double>(std::abs(static_cast<long double>(x) - exact) / unit);
}

template <class T>
void expect_exponentials_within(double most, T least, T smallest) {
  double of_exp = 0, of_expm1 = 0;
  const auto look_at = [&](T x) {
    of_exp = std::max(of_exp, ulps(exp_of_nonpositive(x), std::exp(static_cast<long double>(x))));
    of_expm1 = std::max(of_expm1, ulps(expm1_of_nonpositive(x), std::expm1(static_cast<long double>(x))));
  };
  for (int k = 0; k <= 200000; ++k) look_at(least * static_cast<T>(k) / T{200000});
  for (T x = -1; x < -smallest; x *= static_cast<T>(0.9993)) look_at(x);
  EXPECT_LE(of_exp, most);
  EXPECT_LE(of_expm1, most);
}

TEST(Elementary, ExponentialsAreWithinUnitsOfTheLastPlace) {
  expect_exponentials_within<float>(2, -87.0f, 1e-37f);
  expect_exponentials_within<double>(3, -708.0, 1e-300);
}

template <class T>
void expect_ends(std::initializer_list<T> beyond) {
  EXPECT_EQ(exp_of_nonpositive(T{0}), 1);
  EXPECT_EQ(expm1_of_nonpositive(T{0}), 0);
  for (const T x : beyond) {
    EXPECT_EQ(exp_of_nonpositive(x), 0);
    EXPECT_EQ(expm1_of_nonpositive(x), -1);
  }
  const T nan = std::numeric_limits<T>::quiet_NaN();
  EXPECT_TRUE(std::isnan(exp_of_nonpositive(nan)));
  EXPECT_TRUE(std::isnan(expm1_of_nonpositive(nan)));
}

TEST(Elementary, ExponentialsEndAsTheyShould) {
  expect_ends<float>({-87.01f, -100.0f, -1e30f, -std::numeric_limits<float>::infinity()});
  expect_ends<double>({-708.01, -1e4, -1e300, -std::numeric_limits<double>::infinity()});
}

TEST(Elementary, LogarithmsAreWithinThreeUnitsOfTheLastPlace) {
  double of_log = 0, of_log1p = 0;
  for (double x = 1; x < 1e300; x *= 1.00713)
    of_log = std::max(of_log, ulps(log_of_positive(x), std::log(static_cast<long double>(x))));
  for (double x = 0.5; x < 2; x += 1.37e-5)
    of_log = std::max(of_log, ulps(log_of_positive(x), std::log(static_cast<long double>(x))));
  for (double d = 0.1; d > 1e-15; d *= 0.97)
    for (const double x : {1 + d, 1 - d})
      of_log = std::max(of_log, ulps(log_of_positive(x), std::log(static_cast<long double>(x))));
  for (double x = 1; x > 1e-300; x *= 0.9987)
    of_log1p = std::max(of_log1p, ulps(log1p_of_fraction(x), std::log1p(static_cast<long double>(x))));
  EXPECT_LE(of_log, 3);
  EXPECT_LE(of_log1p, 3);
  EXPECT_EQ(log_of_positive(1.0), 0.0);
  EXPECT_EQ(log1p_of_fraction(0.0), 0.0);
  EXPECT_EQ(log_of_positive(std::numeric_limits<double>::infinity()),
            std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(log_of_positive(std::numeric_limits<double>::quiet_NaN())));
}

/// The most units that a sine or cosine of x or -x is off, of those given.
double worst_circle(double x, double worst) {
  for (const double at : {x, -x}) {
    const auto [sine, cosine] = sine_and_cosine(at);
    const auto exact = static_cast<long double>(at);
    worst = std::max({worst, ulps(sine, std::sin(exact)), ulps(cosine, std::cos(exact))});
  }
  return worst;
}

TEST(Elementary, SinesAndCosinesAreWithinThreeUnitsOfTheLastPlace) {
  double worst = 0;
  for (double x = 1e-300; x <= 0x1p20; x *= 1.00713) worst = worst_circle(x, worst);
  for (double x = 0; x < 7; x += 1.37e-5) worst = worst_circle(x, worst);
  for (int k = 1; k < 667000; k += 1 + k / 50)  // beside zeros, and where places are exchanged
    for (const double d : {0.0, 1e-12, 1e-6, 0.1}) {
      worst = worst_circle(std::numbers::pi / 2 * k + d, worst);
      worst = worst_circle(std::numbers::pi / 4 * k + d, worst);
    }
  EXPECT_LE(worst, 3);
  EXPECT_EQ(sine_and_cosine(0.0).sine, 0.0);
  EXPECT_EQ(sine_and_cosine(0.0).cosine, 1.0);
}

TEST(Elementary, SinesAndCosinesEndAsTheyShould) {
  for (const double x : {0x1.1p20, 1e30, 1e300, std::numeric_limits<double>::infinity()})
    for (const double sign : {1.0, -1.0}) {
      EXPECT_EQ(sine_and_cosine(sign * x).sine, sine_and_cosine(sign * 0x1p20).sine);
      EXPECT_EQ(sine_and_cosine(sign * x).cosine, sine_and_cosine(sign * 0x1p20).cosine);
    }
  EXPECT_TRUE(std::isnan(sine_and_cosine(std::numeric_limits<double>::quiet_NaN()).sine));
  EXPECT_TRUE(std::isnan(sine_and_cosine(std::numeric_limits<double>::quiet_NaN()).cosine));
}

TEST(Elementary, PowersAndCosinesOfASchedule) {
  for (const double x : {0.5, 0.9, 0.999, 1.0})
    for (const std::int64_t n : {0, 1, 2, 3, 17, 1000, 123456})
      EXPECT_NEAR(power_of(x, n), std::pow(x, static_cast<double>(n)), 1e-13) << x << "^" << n;
  for (double x = 0; x <= 1; x += 1.0 / 4096)
    EXPECT_NEAR(cosine_of_turn(x), static_cast<double>(std::cos(std::numbers::pi_v<long double> * x)), 1e-15)
        << x;
}

}  // namespace
}  // namespace espalier
