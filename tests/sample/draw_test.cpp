// Laws of SAMPLE: draws follow the exact law without replacement (chi-square over all
// outcomes, enumerated), and never touch a position of weight zero or an excluded one.
#include "espalier/sample/draw.hpp"
#include "espalier/sample/draw_few.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "mpi_test.hpp"
#include "sample/ordered_draws.hpp"
#include "sample/sampling_laws.hpp"

namespace espalier {
namespace {

using Positions = std::vector<std::int64_t>;

RandomStream stream_of(std::uint64_t seed, std::int64_t trial) {
  return {.seed = seed, .purpose = Purpose::kSample, .row = static_cast<std::uint64_t>(trial)};
}

TEST(DrawUniform, EverySubsetIsEquallyLikely) {
  const auto seed = test_seed(1);
  SCOPED_TRACE(seed);
  for (const auto& [support, picks] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{5, 2}, {6, 5}, {7, 1}, {6, 3}}) {
    std::map<Positions, double> law;
    std::vector<bool> mask(static_cast<std::size_t>(support), false);
    std::fill_n(mask.begin(), picks, true);
    std::vector<Positions> subsets;
    do {
      Positions subset;
      for (std::int64_t i = 0; i < support; ++i)
        if (mask[static_cast<std::size_t>(i)]) subset.push_back(i);
      subsets.push_back(subset);
    } while (std::prev_permutation(mask.begin(), mask.end()));
    for (const auto& subset : subsets) law[subset] = 1.0 / static_cast<double>(subsets.size());
    std::map<Positions, std::int64_t> counts;
    const std::int64_t trials = 40000;
    for (std::int64_t t = 0; t < trials; ++t) {
      Positions chosen(static_cast<std::size_t>(picks));
      draw_uniform(stream_of(seed, t), support, picks, 0, chosen.data());
      ++counts[chosen];
    }
    expect_law(law, counts);
  }
}

TEST(DrawUniform, AnExcludedPositionStaysOutAndTheRestIsUniform) {
  const auto seed = test_seed(2);
  SCOPED_TRACE(seed);
  std::map<Positions, double> law;
  for (const auto& pair : {Positions{0, 1}, {0, 3}, {0, 4}, {1, 3}, {1, 4}, {3, 4}}) law[pair] = 1.0 / 6;
  std::map<Positions, std::int64_t> counts;
  for (std::int64_t t = 0; t < 30000; ++t) {
    Positions chosen = {2, -1, -1};
    draw_uniform(stream_of(seed, t), 5, 2, 1, chosen.data());
    EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
    chosen.erase(std::find(chosen.begin(), chosen.end(), 2));
    ++counts[chosen];
  }
  expect_law(law, counts);
}

TEST(DrawFewUniform, DrawsTheSamePositionsAsDrawUniform) {
  const auto seed = test_seed(3);
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (std::int64_t t = 0; t < 20000; ++t) {
    const bool exclude = random() % 2 == 0;
    const auto picks = static_cast<std::int64_t>(random() % (kFewDraws - exclude)) + 1;
    const std::int64_t most = t % 3 == 0 ? kMostForFewDraws : t % 3 == 1 ? 40 : 1000;
    const auto support =
        picks + exclude +
        static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - picks - exclude + 1));
    Positions expected(static_cast<std::size_t>(picks + exclude));
    std::int64_t excluded = -1;
    if (exclude)
      expected[0] = excluded =
          t % 5 == 0 ? support - 1
                     : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(support));
    draw_uniform(stream_of(seed, t), support, picks, exclude, expected.data());
    std::int32_t chosen[kFewDraws];
    std::uint32_t high[kFewDraws];
    for (std::uint64_t k = 0; k < kFewDraws; ++k) high[k] = random32(stream_of(seed, t), k);
    const auto low = [&](std::int64_t k) {
      return low_random32(stream_of(seed, t), static_cast<std::uint64_t>(k));
    };
    const auto expect_drawn = [&](const char* width) {
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), chosen))
          << width << " lanes: " << support << " " << picks << " " << excluded;
    };
    draw_few_uniform<4>(high, low, support, picks, excluded, chosen), expect_drawn("4");
    draw_few_uniform<8>(high, low, support, picks, excluded, chosen), expect_drawn("8");
    draw_few_uniform<16>(high, low, support, picks, excluded, chosen), expect_drawn("16");
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

TEST(DrawUniform, WorksBeyond32Bits) {
  const std::int64_t support = (std::int64_t{1} << 40) + 12345;
  Positions chosen(50);
  draw_uniform(stream_of(3, 0), support, 50, 0, chosen.data());
  EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
  EXPECT_EQ(std::adjacent_find(chosen.begin(), chosen.end()), chosen.end());
  EXPECT_LT(chosen.back(), support);
  EXPECT_GT(chosen.back(), std::int64_t{1} << 35);
}

std::vector<std::uint64_t> prefix_sums(const std::vector<std::uint64_t>& weights) {
  std::vector<std::uint64_t> prefix(weights.size() + 1, 0);
  std::inclusive_scan(weights.begin(), weights.end(), prefix.begin() + 1);
  return prefix;
}

TEST(DrawWeighted, OrderedDrawsFollowTheExactLaw) {
  const auto seed = test_seed(4);
  SCOPED_TRACE(seed);
  for (const auto& weights :
       std::vector<std::vector<std::uint64_t>>{{1, 2, 0, 4, 3}, {0, 5, 5, 0, 1, 9, 0}, {7, 7, 7, 7}}) {
    for (const std::int64_t picks : {1, 2, 3}) {
      std::map<Positions, double> law;
      for_each_draw(weights, picks, [&](const auto& order, double probability, const auto&) {
        law[{order.begin(), order.end()}] = probability;
      });
      const auto prefix = prefix_sums(weights);
      std::map<Positions, std::int64_t> counts;
      const std::int64_t trials = 200000;
      for (std::int64_t t = 0; t < trials; ++t) {
        Positions chosen(static_cast<std::size_t>(picks)), order(static_cast<std::size_t>(picks));
        draw_weighted(stream_of(seed, t), prefix.data(), std::ssize(weights), picks, 0, chosen.data(),
                      order.data());
        ++counts[order];
        std::sort(order.begin(), order.end());
        EXPECT_EQ(order, chosen);
      }
      expect_law(law, counts);
    }
  }
}

TEST(DrawWeighted, EnormousSkewEndsAndZeroWeightsAreNeverDrawn) {
  std::vector<std::uint64_t> weights(1000, 0);
  weights[3] = std::uint64_t{1} << 62;
  for (std::size_t i = 500; i < 520; ++i) weights[i] = 1;
  const auto prefix = prefix_sums(weights);
  for (std::int64_t t = 0; t < 200; ++t) {
    Positions chosen(21);
    draw_weighted(stream_of(5, t), prefix.data(), 1000, 21, 0, chosen.data(), nullptr);
    Positions all = {3};
    for (std::int64_t i = 500; i < 520; ++i) all.push_back(i);
    EXPECT_EQ(chosen, all) << "the whole support";
  }
}

// Word for word the same draws, whatever the weights: equal, of any size, zero, one dominating; up
// to the whole support.
TEST(DrawWeighted, ManyPicksAreTheSameDraws) {
  const auto seed = test_seed(31);
  SCOPED_TRACE(seed);
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    const RandomStream of_weights = {.seed = seed, .epoch = 1, .row = trial};
    const auto support = 1 + random_below(of_weights, 0, 300);
    std::vector<std::uint64_t> weights(support);
    std::int64_t positive = 0;
    for (std::size_t i = 0; i < support; ++i) {
      weights[i] =
          trial % 4 == 0 ? 7 : random64(of_weights, i + 1) >> (8 + random_below(of_weights, 1000 + i, 56));
      if (trial % 4 == 1 && i == support / 2) weights[i] = std::uint64_t{1} << 62;
      positive += weights[i] > 0;
    }
    const auto prefix = prefix_sums(weights);
    for (const auto picks : {positive, positive / 2, std::min<std::int64_t>(positive, 1)}) {
      const RandomStream stream = {.seed = seed, .row = trial};
      Positions chosen(static_cast<std::size_t>(picks)), in_order = chosen, many = chosen,
                                                         many_in_order = chosen;
      draw_weighted(stream, prefix.data(), std::ssize(weights), picks, 0, chosen.data(), in_order.data());
      draw_weighted_many(stream, prefix.data(), std::ssize(weights), picks, many.data(),
                         many_in_order.data());
      EXPECT_EQ(many, chosen);
      EXPECT_EQ(many_in_order, in_order);
    }
  }
}

// Small weights, so that points meet the ends of intervals: the points left are those of no cut
// interval, in order.
TEST(CutAxis, CountsThePointsThatAreLeft) {
  const auto seed = test_seed(8);
  SCOPED_TRACE(seed);
  for (std::uint64_t trial = 0; trial < 300; ++trial) {
    const RandomStream stream = {.seed = seed, .row = trial};
    CutAxis axis;
    std::vector<std::uint64_t> left;
    std::uint64_t start = 0, removed = 0;
    for (std::uint64_t interval = 0; interval < 12; ++interval) {
      const auto weight = random_below(stream, 2 * interval, 4);
      const bool cut = random_below(stream, 2 * interval + 1, 2) == 1;
      if (cut) axis.cut(start, weight);
      removed += cut ? weight : 0;
      for (std::uint64_t point = start; point < start + weight && !cut; ++point) left.push_back(point);
      start += weight;
    }
    EXPECT_EQ(axis.removed(), removed);
    for (std::uint64_t point = 0; point < left.size(); ++point)
      EXPECT_EQ(axis.on_whole_axis(point), left[point]);
    axis.clear();
    EXPECT_EQ(axis.removed(), 0u);
    EXPECT_EQ(axis.on_whole_axis(5), 5u);
  }
}

}  // namespace
}  // namespace espalier
