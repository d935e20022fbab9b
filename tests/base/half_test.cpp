// Laws: every binary16 (bfloat16) number survives the way to float32 and back; rounding is to
// nearest, ties to even. The oracle knows binary16 only as a sorted table of numbers s m 2^e.
#include "espalier/base/half.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "mpi_test.hpp"

namespace espalier {
namespace {

// The value of a finite, positive bit pattern, from the definition.
double value_of(std::uint16_t bits) {
  const int exponent = bits >> 10, mantissa = bits & 0x3ff;
  return exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Half, AllNumbersAreExactAndSurvive) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    const std::uint16_t magnitude = half.bits & 0x7fff;
    const float x = to_float(half);
    if (magnitude > 0x7c00) {
      EXPECT_TRUE(std::isnan(x));
      EXPECT_TRUE(std::isnan(to_float(to_half(x))));
      continue;
    }
    if (magnitude == 0x7c00)
      EXPECT_TRUE(std::isinf(x));
    else
      EXPECT_EQ(static_cast<double>(std::abs(x)), value_of(magnitude));
    EXPECT_EQ(std::signbit(x), bits >= 0x8000);
    EXPECT_EQ(to_half(x).bits, half.bits);
  }
}

// Rounds by looking for the neighbours of |x| in the table of all finite numbers; 65536 stands
// for infinity.
std::uint16_t rounded_by_table(float x) {
  static const std::vector<double> table = [] {
    std::vector<double> all;
    for (std::uint16_t bits = 0; bits <= 0x7c00; ++bits)
      all.push_back(bits == 0x7c00 ? 65536.0 : value_of(bits));
    return all;
  }();
  const double magnitude = std::abs(static_cast<double>(x));
  const auto above = std::lower_bound(table.begin(), table.end(), magnitude);
  auto bits = static_cast<std::uint16_t>(above == table.end() ? 0x7c00 : above - table.begin());
  if (above != table.end() && above != table.begin() && *above != magnitude) {
    const double up = *above - magnitude, down = magnitude - *(above - 1);
    const bool lower = down < up || (down == up && (bits - 1) % 2 == 0);
    if (lower) --bits;
  }
  return static_cast<std::uint16_t>(bits | (std::signbit(x) ? 0x8000 : 0));
}

TEST(Half, RoundsToNearestTiesToEven) {
  const auto seed = test_seed(11);
  SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={}", seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 300000; ++i) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(x)) continue;
    EXPECT_EQ(to_half(x).bits, rounded_by_table(x)) << x;
    const float inside =
        std::ldexp(static_cast<float>(random() >> 40) * 0x1p-24f, static_cast<int>(random() % 44) - 26);
    EXPECT_EQ(to_half(inside).bits, rounded_by_table(inside)) << inside;
  }
}

TEST(Half, TiesAndEdges) {
  for (std::uint16_t bits = 0; bits < 0x7bff;
       ++bits) {  // halfway between every two neighbours, and a step to either side
    const auto tie =
        static_cast<float>((value_of(bits) + value_of(static_cast<std::uint16_t>(bits + 1))) / 2);
    EXPECT_EQ(to_half(tie).bits, bits % 2 == 0 ? bits : bits + 1);
    EXPECT_EQ(to_half(std::nextafter(tie, 0.0f)).bits, bits);
    EXPECT_EQ(to_half(-std::nextafter(tie, 1e9f)).bits, (bits + 1) | 0x8000);
  }
  EXPECT_EQ(to_half(65504.0f).bits, 0x7bff);
  EXPECT_EQ(to_half(65519.996f).bits, 0x7bff);
  EXPECT_EQ(to_half(65520.0f).bits, 0x7c00) << "the tie between 65504 and 65536 goes to infinity";
  EXPECT_EQ(to_half(-std::numeric_limits<float>::infinity()).bits, 0xfc00);
  EXPECT_EQ(to_half(0x1p-25f).bits, 0) << "half of the least subnormal: to even";
  EXPECT_EQ(to_half(-0.0f).bits, 0x8000);
  EXPECT_EQ(to_half(std::numeric_limits<float>::denorm_min()).bits, 0);
}

TEST(BFloat16, AllNumbersAreExactAndSurvive) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const BFloat16 number{static_cast<std::uint16_t>(bits)};
    const std::uint32_t magnitude = bits & 0x7fffu;
    const float x = to_float(number);
    EXPECT_EQ(std::signbit(x), bits >= 0x8000);
    if (magnitude > 0x7f80) {
      EXPECT_TRUE(std::isnan(x) && std::isnan(to_float(to_bfloat16(x))));
      continue;
    }
    EXPECT_EQ(to_bfloat16(x).bits, number.bits);
    const auto exponent = static_cast<int>(magnitude >> 7), mantissa = static_cast<int>(magnitude & 0x7f);
    if (magnitude < 0x7f80)
      EXPECT_EQ(static_cast<double>(std::abs(x)),
                exponent == 0 ? std::ldexp(mantissa, -133) : std::ldexp(128 + mantissa, exponent - 134));
  }
}

// Between every two neighbours: the tie goes to the even one, a step off it to the nearer one.
TEST(BFloat16, RoundsToNearestTiesToEven) {
  for (std::uint16_t bits = 0; bits < 0x7f80; ++bits) {
    const auto next = static_cast<std::uint16_t>(bits + 1), even = bits % 2 == 0 ? bits : next;
    const auto above = next == 0x7f80 ? 0x1p128 : static_cast<double>(to_float(BFloat16{next}));
    const auto tie = static_cast<float>((static_cast<double>(to_float(BFloat16{bits})) + above) / 2);
    EXPECT_EQ(to_bfloat16(tie).bits, even);
    EXPECT_EQ(to_bfloat16(std::nextafter(tie, 0.0f)).bits, bits);
    EXPECT_EQ(to_bfloat16(-std::nextafter(tie, INFINITY)).bits, next | 0x8000);
  }
  EXPECT_EQ(to_bfloat16(-INFINITY).bits, 0xff80);
  EXPECT_EQ(to_bfloat16(-0.0f).bits, 0x8000);
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(std::bit_cast<float>(0x7f800001u)))))
      << "its bits are the lower half's";
}

// The processor's conversion of eight at a time, and the rest one by one.
TEST(Half, ManyAtOnceAreTheSameAsOneByOne) {
  for (const std::int64_t count : {0, 1, 7, 8, 9, 16, 23, 1000}) {
    std::vector<Half> from(static_cast<std::size_t>(count));
    for (std::int64_t k = 0; k < count; ++k)
      from[k].bits = static_cast<std::uint16_t>((k + count) * 31 % 0x7c00);
    std::vector<float> to(static_cast<std::size_t>(count) + 1, -1.0f);
    to_floats(from.data(), to.data(), count);
    for (std::int64_t k = 0; k < count; ++k) EXPECT_EQ(to[k], to_float(from[k])) << k << " of " << count;
    EXPECT_EQ(to[count], -1.0f) << count;
  }
}

}  // namespace
}  // namespace espalier
