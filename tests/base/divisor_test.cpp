// ranks: 1
// Law: a quotient is that of the division, for every divisor and every number from 0 to 2^63 - 1.
#include "espalier/base/divisor.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "mpi_test.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

/// Around multiples of d, where a quotient steps, and at both ends.
void expect_quotients(std::int64_t d, std::mt19937_64& random) {
  const Divisor by(d);
  std::vector<std::int64_t> numbers = {0, 1, d - 1, d, kLargest / d * d, kLargest / d * d - 1, kLargest};
  for (int k = 0; k < 20; ++k) {
    const auto multiple = static_cast<std::int64_t>(random() >> 1 >> random() % 63) / d * d;
    numbers.insert(numbers.end(), {multiple, multiple + (d - 1) / 2, multiple > 0 ? multiple - 1 : 0});
  }
  for (const auto n : numbers) ASSERT_EQ(by.quotient(n), n / d) << n << " / " << d;
}

TEST(Divisor, QuotientsAreExact) {
  std::mt19937_64 random(test_seed(41));
  for (std::int64_t d = 1; d < 3000; ++d) expect_quotients(d, random);
  for (int bit = 1; bit < 63; ++bit)
    for (const std::int64_t near : {-1, 0, 1}) expect_quotients((std::int64_t{1} << bit) + near, random);
  for (int k = 0; k < 2000; ++k)
    expect_quotients(1 + static_cast<std::int64_t>(random() >> 2 >> random() % 61), random);
  expect_quotients(kLargest, random);
}

}  // namespace
}  // namespace espalier
