// ranks: 1 2 3 4 6
// long ranks: 8
// Laws: a reproducible reduction gives the same bits whichever rank contributes what; both
// reductions give the sum; in pieces they give what they give whole.
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

// ---- a network's, in pieces ----

std::vector<std::size_t> pieces_of(const std::vector<std::int64_t>& numbers, int ranks) {
  std::vector<GradientGroup> groups;
  for (const auto n : numbers) groups.push_back({.first = 0, .count = 1, .numbers = n});
  return reduction_pieces(groups, ranks);
}

TEST(NetworkReduction, PiecesAreNeitherShortNorSplit) {
  using Ends = std::vector<std::size_t>;
  EXPECT_EQ(pieces_of({0, 16384, 16384, 1 << 20, 0}, 4), (Ends{2, 3, 5}));
  EXPECT_EQ(pieces_of({16383, 1, 5, 16379, 16383}, 2), (Ends{2, 4, 5})) << "the last may be";
  EXPECT_EQ(pieces_of({16384, 16384}, 1), Ends{2}) << "nothing travels";
  EXPECT_EQ(pieces_of({16384, 16384}, 9), Ends{2}) << "16 KiB for each of more ranks";
  EXPECT_EQ(pieces_of({100, 100}, 4), Ends{2});
  EXPECT_EQ(pieces_of({}, 4), Ends{0});
}

// Two of a group, a group of none, one beyond; of each a bias that is small beside it.
const std::vector<GradientGroup> kGroups = {{.first = 5, .count = 1, .numbers = 7},
                                            {.first = 3, .count = 2, .numbers = 20000 + 9},
                                            {.first = 3, .count = 0, .numbers = 0},
                                            {.first = 1, .count = 2, .numbers = 3 + 30000},
                                            {.first = 0, .count = 1, .numbers = 25 * 1000}};
constexpr std::int64_t kSizes[] = {25000, 3, 30000, 20000, 9, 7};

std::vector<Matrix<float>> gradients_of(std::int64_t batch) {
  std::vector<Matrix<float>> tensors;
  for (const auto size : kSizes) {
    auto& tensor = tensors.emplace_back(1, size);
    for (std::int64_t k = 0; k < size; ++k)
      tensor.data[static_cast<std::size_t>(k)] = static_cast<float>((k * 37 + batch * 101) % 1999 - 999) *
                                                 std::pow(10.0f, static_cast<float>(-(k % 7)));
  }
  return tensors;
}

// What is not there yet is not read.
void add_group_by_group(NetworkReductionOn<Cpu>& reduction, std::vector<Matrix<float>>& gradients,
                        std::int64_t batches) {
  const auto whole = gradients;
  for (auto& tensor : gradients) std::ranges::fill(tensor.data, NAN);
  for (std::size_t g = 0; g < kGroups.size(); ++g) {
    for (std::size_t k = kGroups[g].first; k < kGroups[g].first + kGroups[g].count; ++k)
      gradients[k].data = whole[k].data;
    reduction.add_groups(gradients, g + 1, batches);
  }
}

// Batches are dealt out from rank `first` on, so that some have none, some several.
std::vector<Matrix<float>> reduce_network(const Communicator& comm, bool reproducible, int first,
                                          std::int64_t batches, std::int64_t bad = -1) {
  NetworkReductionOn<Cpu> reduction(Cpu{}, comm, reproducible, kGroups);
  EXPECT_EQ(reduction.in_pieces(), comm.size() > 1);
  std::vector<Matrix<float>> sums;
  for (int step = 0; step < 2; ++step) {  // what is left of a step must not be in the next
    std::vector<std::int64_t> mine;
    for (std::int64_t b = 0; b < batches; ++b)
      if ((b + first) % comm.size() == comm.rank()) mine.push_back(b + 10 * step);
    for (const auto b : mine) {
      sums = gradients_of(b);
      if (b == bad) sums[2].data[77] = INFINITY;
      if (!reduction.in_pieces() || b != mine.back())
        reduction.add(sums);
      else
        add_group_by_group(reduction, sums, batches);
    }
    if (mine.empty()) sums = gradients_of(99);
    reduction.finish(batches, sums);
  }
  return sums;
}

TEST(NetworkReduction, InPiecesIsTheSumWithTheBitsOfOneRank) {
  const auto& world = test_world();
  const auto alone = world.split(world.rank(), 0);
  for (const std::int64_t batches : {1, 2, 7})
    for (const bool reproducible : {true, false}) {
      const auto expected = reduce_network(alone, reproducible, 0, batches);
      for (int first = 0; first < std::min(world.size(), 3); ++first) {
        const auto sums = reduce_network(world, reproducible, first, batches);
        for (std::size_t t = 0; t < sums.size(); ++t) {
          if (reproducible) {
            EXPECT_EQ(sums[t].data, expected[t].data) << t;
          } else {
            for (std::size_t k = 0; k < sums[t].data.size(); ++k)
              ASSERT_NEAR(sums[t].data[k], expected[t].data[k], 4e-3) << t << " " << k;
            auto others = sums[t].data;
            world.broadcast(std::span<float>(others), 0, "check");
            EXPECT_EQ(sums[t].data, others) << "the same on all ranks";
          }
        }
      }
    }
}

TEST(NetworkReduction, APieceThatIsNotFiniteStaysSo) {
  const auto& world = test_world();
  const auto sums = reduce_network(world, true, 0, 3, 12);
  for (std::size_t t = 0; t < sums.size(); ++t) EXPECT_EQ(std::isnan(sums[t].data[0]), t == 2) << t;
}

TEST(NetworkReduction, BooksAllBytesOnce) {
  const auto& world = test_world();
  world.traffic().clear();
  reduce_network(world, false, 0, 1);
  std::int64_t bytes = 0;
  for (const auto numbers : {20000 + 9 + 7, 30000 + 3, 25000})
    bytes += all_reduce_volume(4 * numbers, world.size()).bytes_sent;
  EXPECT_EQ(world.traffic().of("reduce").bytes_sent, 2 * bytes);
  EXPECT_EQ(world.traffic().of("reduce").messages, world.size() > 1 ? 2 * 3 * 2 * (world.size() - 1) : 0);
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
