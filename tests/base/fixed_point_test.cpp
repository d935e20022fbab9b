// ranks: 1
// Laws: fixed-point sums are the same in any order and grouping, never overflow with the promised
// number of terms, and are off by no more than the promised bits; a weight is proportional, at
// least 1, and as many as promised sum exactly.
#include "espalier/base/fixed_point.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "mpi_test.hpp"

namespace espalier {
namespace {

const double kBounds[] = {1.0, std::nextafter(1.0, 0.0), 0.3, 4e-310, 5e-324, 1e-30, 7e20, 1.7e308};
const std::int64_t kTerms[] = {1, 2, 3, 4, 5, 1000, 1024, 1025, (std::int64_t{1} << 40) + 1};

int log2_up(std::int64_t terms) {
  int log = 0;
  while ((std::int64_t{1} << log) < terms) ++log;
  return log;
}

TEST(FixedPointScale, AsManyTermsAsPromisedDoNotOverflow) {
  __extension__ using Wide = __int128;
  for (const double bound : kBounds)
    for (const auto terms : kTerms)
      for (const double sign : {1.0, -1.0}) {
        const FixedPointScale scale(bound, terms);
        const Wide sum = static_cast<Wide>(scale.to_fixed(sign * bound)) * terms, limit = static_cast<Wide>(1)
                                                                                          << 63;
        EXPECT_TRUE(-limit < sum && sum < limit) << bound << " x " << terms;
      }
}

// Off by at most half a unit, and a unit is 2^(e + ceil(log2 terms) - 62) for the smallest 2^e
// above the bound.
TEST(FixedPointScale, ATermKeepsThePromisedBits) {
  std::mt19937_64 random(test_seed(3));
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (const double bound : {1.0, 0.3, 1e-30, 7e20})
    for (const auto terms : kTerms) {
      const FixedPointScale scale(bound, terms);
      const int exponent = std::ilogb(bound) + 1;
      for (int k = 0; k < 100; ++k) {
        const double x = bound * uniform(random);
        EXPECT_LE(std::abs(scale.to_double(scale.to_fixed(x)) - x),
                  std::ldexp(0.5, exponent + log2_up(terms) - 62))
            << x << " of " << terms;
      }
    }
}

TEST(FixedPointScale, SumsAreExactAndTheSameInAnyOrderAndGrouping) {
  const auto seed = test_seed(4);
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> terms(1000);
  for (double& x : terms) x = std::ldexp(uniform(random), -static_cast<int>(random() % 60));
  const FixedPointScale scale(1.0, std::ssize(terms));
  const auto fixed_sum = [&](std::size_t begin, std::size_t end) {
    std::int64_t sum = 0;
    for (auto k = begin; k < end; ++k) sum += scale.to_fixed(terms[k]);
    return sum;
  };
  const auto expected = fixed_sum(0, terms.size());
  const double plain = std::accumulate(terms.begin(), terms.end(), 0.0);
  EXPECT_NEAR(scale.to_double(expected), plain, 1e-12);
  for (int trial = 0; trial < 20; ++trial) {
    std::ranges::shuffle(terms, random);
    const auto a = random() % 1001, b = random() % 1001;
    EXPECT_EQ(fixed_sum(0, std::min(a, b)) +
                  (fixed_sum(std::min(a, b), std::max(a, b)) + fixed_sum(std::max(a, b), 1000)),
              expected);
  }
  // Multiples of 2^-30 are hit exactly.
  for (double& x : terms) x = std::ldexp(std::nearbyint(std::ldexp(x, 30)), -30);
  EXPECT_EQ(scale.to_double(fixed_sum(0, terms.size())), std::accumulate(terms.begin(), terms.end(), 0.0));
}

// Bits are part of the interface: s = 62 - e - ceil(log2 N).
TEST(FixedPointScale, HasTheDocumentedShift) {
  EXPECT_EQ(FixedPointScale(1.0, 1).to_fixed(1.0), std::int64_t{1} << 61);
  EXPECT_EQ(FixedPointScale(0.75, 1000).to_fixed(0.75), std::int64_t{3} << 50);
  EXPECT_EQ(FixedPointScale(0.75, 1024).to_fixed(-0.75), -(std::int64_t{3} << 50));
  EXPECT_EQ(FixedPointScale(0.75, 1025).to_fixed(0.5), std::int64_t{1} << 50);
}

TEST(FixedPointScale, ZerosAlone) {
  const FixedPointScale scale(0.0, 1000);
  EXPECT_EQ(scale.to_fixed(0.0), 0);
  EXPECT_EQ(scale.to_double(0), 0.0);
}

const std::int64_t kCounts[] = {1, 2, 3, 5, 1000, 1024, 1025, std::int64_t{1} << 31};

TEST(FixedPointWeight, TheLargestUsesTheBitsThatTheirNumberLeaves) {
  for (const float largest :
       {1.0f, std::nextafter(1.0f, 0.0f), std::nextafter(2.0f, 0.0f), 0.1f, 3.4e38f, 1e-45f, 1e-38f})
    for (const auto count : kCounts) {
      const auto weight = fixed_point_weight(largest, shift_for_sum(largest, count));
      EXPECT_GE(weight, std::uint64_t{1} << (61 - log2_up(count))) << largest << " x " << count;
      EXPECT_LT(weight, std::uint64_t{1} << (62 - log2_up(count))) << largest << " x " << count;
    }
}

TEST(FixedPointWeight, APositiveWeightStaysDrawable) {
  const int shift = shift_for_sum(1.0f, 1000);
  for (const float tiny : {1e-45f, 1e-38f, 1e-20f}) EXPECT_EQ(fixed_point_weight(tiny, shift), 1u) << tiny;
  for (const float none : {0.0f, -0.0f, -1.0f, -1e-45f, std::numeric_limits<float>::quiet_NaN()})
    EXPECT_EQ(fixed_point_weight(none, shift), 0u) << none;
}

TEST(FixedPointWeight, IsProportionalAndNearestWithinThePromisedBound) {
  std::mt19937_64 random(test_seed(6));
  std::uniform_real_distribution<float> uniform(0, 1);
  const float largest = 1.75f;
  for (const auto count : kCounts) {
    const int shift = shift_for_sum(largest, count);
    EXPECT_EQ(fixed_point_weight(0.5f, shift) * 2, fixed_point_weight(1.0f, shift));
    EXPECT_EQ(fixed_point_weight(std::ldexp(2.5f, -shift), shift), 2u) << "ties to even";
    EXPECT_EQ(fixed_point_weight(std::ldexp(2.75f, -shift), shift), 3u) << "to nearest";
    for (int k = 0; k < 1000; ++k) {
      const float weight = std::ldexp(largest * uniform(random), -static_cast<int>(random() % 70));
      const double exact = std::ldexp(static_cast<double>(weight), shift),
                   off = std::abs(static_cast<double>(fixed_point_weight(weight, shift)) - exact),
                   terms = static_cast<double>(count);
      EXPECT_LE(off, exact < 1 ? 1 : 0.5);
      EXPECT_LT(off, std::ldexp(terms * largest, shift - 60));
      if (weight >= std::ldexp(terms * largest, -37)) {
        EXPECT_EQ(off, 0) << weight << " of " << count;
      }
    }
  }
}

}  // namespace
}  // namespace espalier
