// ranks: 1 2 3 4 6
// long ranks: 8
// Laws: a reproducible reduction gives the same bits whichever rank contributes what; both
// reductions give the sum.
#include "espalier/train/gradient_reduction.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "espalier/base/philox.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kBatches = 7;

// Tensors whose entries span many magnitudes, so that a float sum would depend on its order.
std::vector<Matrix<float>> contribution(std::int64_t batch) {
  std::vector<Matrix<float>> tensors;
  tensors.emplace_back(3, 5);
  tensors.emplace_back(1, 4);
  std::uint64_t draw = 0;
  const RandomStream stream = {.seed = 8, .row = static_cast<std::uint64_t>(batch)};
  for (auto& tensor : tensors)
    for (auto& x : tensor.data) {
      const double u = to_unit_double(random64(stream, draw++));
      x = static_cast<float>((u - 0.5) * std::pow(10.0, -6.0 * to_unit_double(random64(stream, draw++))));
    }
  return tensors;
}

std::vector<Matrix<float>> reduce(bool reproducible, std::int64_t rotation) {
  const auto& world = test_world();
  GradientReduction reduction(Cpu{}, world, reproducible);
  for (std::int64_t b = 0; b < kBatches; ++b) {
    if ((b + rotation) % world.size() != world.rank()) continue;
    const auto tensors = contribution(b);
    reduction.add({&tensors[0], &tensors[1]}, 0.25f);
  }
  std::vector<Matrix<float>> sums;
  sums.emplace_back(3, 5);
  sums.emplace_back(1, 4);
  reduction.finish(kBatches, {&sums[0], &sums[1]});
  return sums;
}

TEST(GradientReduction, IsTheSum) {
  for (const bool reproducible : {false, true}) {
    const auto sums = reduce(reproducible, 0);
    for (std::size_t t = 0; t < 2; ++t)
      for (std::size_t k = 0; k < sums[t].data.size(); ++k) {
        double expected = 0;
        for (std::int64_t b = 0; b < kBatches; ++b) expected += 0.25 * contribution(b)[t].data[k];
        EXPECT_NEAR(sums[t].data[k], expected, 1e-6 * std::abs(expected) + 1e-8);
      }
  }
}

// One rank alone adds the same integers in batch order: the oracle for what all ranks together
// must give.
TEST(GradientReduction, ReproducibleBitsDoNotDependOnWhoContributes) {
  const auto alone_world = test_world().split(test_world().rank(), 0);
  GradientReduction alone(Cpu{}, alone_world, true);
  for (std::int64_t b = kBatches; b-- > 0;) {
    const auto tensors = contribution(b);
    alone.add({&tensors[0], &tensors[1]}, 0.25f);
  }
  std::vector<Matrix<float>> expected;
  expected.emplace_back(3, 5);
  expected.emplace_back(1, 4);
  alone.finish(kBatches, {&expected[0], &expected[1]});
  for (std::int64_t rotation = 0; rotation < 3; ++rotation) {
    const auto sums = reduce(true, rotation);
    EXPECT_EQ(sums[0].data, expected[0].data);
    EXPECT_EQ(sums[1].data, expected[1].data);
  }
}

// Each tensor has its own fixed point: neither the largest nor the smallest loses a bit beside
// the other.
TEST(GradientReduction, TensorsOfFarApartMagnitudesKeepTheirBits) {
  const auto ranks = static_cast<float>(test_world().size());
  for (const auto& [first, second] : {std::pair{0x1.8p60f, 0x1.8p-60f}, {0x1.8p-60f, 0x1.8p60f}}) {
    GradientReduction reduction(Cpu{}, test_world(), true);
    Matrix<float> tensors[2] = {Matrix<float>(1, 3), Matrix<float>(1, 2)}, sums[2] = {tensors[0], tensors[1]};
    std::ranges::fill(tensors[0].data, first);
    std::ranges::fill(tensors[1].data, second);
    reduction.add({&tensors[0], &tensors[1]});
    reduction.finish(test_world().size(), {&sums[0], &sums[1]});
    for (const float x : sums[0].data) EXPECT_EQ(x, ranks * first);
    for (const float x : sums[1].data) EXPECT_EQ(x, ranks * second);
  }
}

TEST(GradientReduction, NotFiniteStaysNotFinite) {
  GradientReduction reduction(Cpu{}, test_world(), true);
  Matrix<float> tensor(1, 2);
  for (const float bad : {NAN, INFINITY}) {
    for (const bool first : {true, false}) {  // finite numbers before and after it must not hide it
      tensor.data = {3e38f, -3e38f};          // far outside of any scale that has no bound
      for (int k = 0; k < 2; ++k) reduction.add({&tensor});
      if (test_world().rank() == 0) tensor.data[first ? 0 : 1] = bad;
      reduction.add({&tensor});
      Matrix<float> sum(1, 2);
      reduction.finish(3 * test_world().size(), {&sum});
      EXPECT_TRUE(std::isnan(sum.data[0]) && std::isnan(sum.data[1]));
    }
  }
}

TEST(ReproducibleSum, IsExactWhateverTheOrder) {
  const auto& world = test_world();
  std::vector<double> mine;
  for (std::int64_t k = 0; k < 20; ++k)
    if (k % world.size() == world.rank())
      mine.push_back(std::ldexp(k % 2 == 0 ? 1.0 : -1.0, static_cast<int>(k)) + 0.125);
  double expected = 0;
  for (int k = 0; k < 20; ++k) expected += std::ldexp(k % 2 == 0 ? 1.0 : -1.0, k) + 0.125;
  EXPECT_EQ(reproducible_sum(world, mine), expected);
  EXPECT_TRUE(std::isnan(reproducible_sum(world, {world.rank() == 0 ? INFINITY : 1.0})));
}

}  // namespace
}  // namespace espalier
