// Laws of the race: exponentials descend as words ascend and are -log2 within their bound; the
// order of arrivals follows the exact law of draws without replacement (chi-square over all ordered
// outcomes, enumerated), which is draw_weighted's; merged from any parts in any order it is the
// whole row's; it is that of all arrivals sorted in 128 bits; an entry's word is its own.
#include "espalier/sample/draw_race.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "mpi_test.hpp"
#include "sample/ordered_draws.hpp"
#include "sample/sampling_laws.hpp"

namespace espalier {
namespace {

using Weights64 = std::vector<std::uint64_t>;
__extension__ using Wide = unsigned __int128;

// exponential(word) 2^-57 + log2 U, in units of 2^-57. The logarithm is of a number in [1, 2), so
// that a long double of 64 bits is exact to 2^-64.
double error_of(std::uint64_t word) {
  int exponent = 0;
  const long double half = std::frexp(static_cast<long double>(word | 1), &exponent);
  const auto whole =
      static_cast<long double>((std::uint64_t{65} - static_cast<std::uint64_t>(exponent)) << 57);
  return static_cast<double>((static_cast<long double>(exponential(word)) - whole) +
                             std::ldexp(std::log2(2 * half), 57));
}

// Words near those where the table, or the number of zeros, changes.
std::vector<std::uint64_t> words_at_borders() {
  std::vector<std::uint64_t> words;
  for (int zeros = 0; zeros < 64; ++zeros)
    for (std::uint64_t i = 0; i < 256; ++i) {
      const auto border = (std::uint64_t{1} << 63 | i << 55) >> zeros;
      for (std::uint64_t k = 0; k < 40; ++k) words.push_back(border + k - 20);
    }
  return words;
}

TEST(Exponential, IsTheLogarithmWithinItsBound) {
  const auto seed = test_seed(1);
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  auto words = words_at_borders();
  for (int k = 0; k < 200000; ++k) words.push_back(random() >> random() % 64);
  for (int k = 0; k < 100000; ++k) words.push_back(~(random() >> random() % 64));
  double least = 2, most = 1;
  for (const auto word : words) {
    const auto error = error_of(word);
    least = std::min(least, error);
    most = std::max(most, error);
    ASSERT_TRUE(error > 0.99 && error < 2.02) << std::hex << word << std::dec << " error " << error;
  }
  EXPECT_LT(least, 1) << "the bound is no looser than it must be";
  EXPECT_GT(most, 2);
  EXPECT_EQ(exponential(0), (std::uint64_t{1} << 63) + 1);
  EXPECT_EQ(exponential(~std::uint64_t{0}), 2u);
}

TEST(Exponential, IsNearWhatRacesGoBy) {
  const auto seed = test_seed(7);
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  auto words = words_at_borders();
  for (int k = 0; k < 200000; ++k) words.push_back(random() >> random() % 64);
  for (int k = 0; k < 100000; ++k) words.push_back(~(random() >> random() % 64));
  double most = 0;
  for (const auto word : words)
    most = std::max(
        most, std::abs(near_exponential(word) - std::ldexp(static_cast<double>(exponential(word)), -57)));
  EXPECT_LT(most, 0x1p-39);
  EXPECT_GT(most, 0x1p-43) << "the bound is no looser than it must be";
}

TEST(Exponential, DescendsAsWordsAscend) {
  const auto seed = test_seed(2);
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  auto words = words_at_borders();
  for (int k = 0; k < 300000; ++k) {
    const auto word = random() >> random() % 64;
    for (const std::uint64_t step : {1u, 2u, 15u, 16u, 17u, 100u, 1000u})
      if (word + step > word) words.insert(words.end(), {word, word + step});
  }
  std::ranges::sort(words);
  for (std::size_t k = 1; k < words.size(); ++k)
    ASSERT_LE(exponential(words[k]), exponential(words[k - 1]))
        << std::hex << words[k - 1] << " " << words[k];
}

RandomStream row_of_trial(std::uint64_t seed, std::int64_t trial) {
  return {.seed = seed,
          .purpose = Purpose::kRace,
          .batch = 3,
          .layer = 2,
          .row = static_cast<std::uint64_t>(trial)};
}

// Places by arrival of a row of neighbours 0, 7, 14, ..
Ids arrivals_of(const RandomStream& row, const Weights64& weights, std::int64_t s) {
  Ids neighbours;
  for (std::size_t k = 0; k < weights.size(); ++k) neighbours.push_back(static_cast<std::int64_t>(7 * k));
  Race race;
  race.start(row, s);
  race.enter(
      neighbours.data(), std::ssize(neighbours), [&](std::int64_t k) { return weights[k]; },
      [](std::int64_t k) { return k; });
  Ids places;
  for (const auto& runner : race.arrivals()) places.push_back(runner.place);
  return places;
}

TEST(Race, ArrivalsFollowTheExactLawOfOrderedDraws) {
  const auto seed = test_seed(3);
  SCOPED_TRACE(seed);
  for (const auto& weights : std::vector<Weights64>{{1, 2, 0, 4, 3},
                                                    {0, 5, 5, 0, 1, 9, 0},
                                                    {7, 7, 7, 7},
                                                    {4294967295u, 1, 1, 2},
                                                    {1, std::uint64_t{1} << 61, std::uint64_t{3} << 59}})
    for (const std::int64_t picks : {1, 2, 3}) {
      std::map<Ids, double> law;
      for_each_draw(weights, picks, [&](const auto& order, double probability, const auto&) {
        law[{order.begin(), order.end()}] = probability;
      });
      std::map<Ids, std::int64_t> counts;
      for (std::int64_t t = 0; t < 100000; ++t) ++counts[arrivals_of(row_of_trial(seed, t), weights, picks)];
      if (law.size() < 2 || std::ranges::count_if(law, [](auto& of) { return of.second > 1e-3; }) < 2)
        EXPECT_LE(counts.size(), 2u) << "all but certain";
      else
        expect_law(law, counts);
    }
}

// Neighbours, ascending, and weights of a row: equal ones, zeros, some that dominate, any; or such
// that all arrive at the same time, or within 2^-40 of it.
struct RaceRow {
  Ids neighbours;
  Weights64 weights;
};

RaceRow random_row(std::mt19937_64& random, const RandomStream& stream) {
  RaceRow row;
  const auto kind = random() % 6, size = random() % 400;
  std::int64_t neighbour = 0;
  for (std::uint64_t k = 0; k < size; ++k) {
    row.neighbours.push_back(neighbour += 1 + static_cast<std::int64_t>(random() % 5));
    row.weights.push_back(kind == 0   ? 9
                          : kind == 1 ? random() % 3
                          : kind == 2 ? random() % 4 == 0 ? (std::uint64_t{1} << 32) - 1 : 1
                          : kind == 3 ? random() >> (2 + random() % 62)
                                      : exponential(race_word(stream, neighbour)) >> (kind == 4 ? 1 : 12));
  }
  return row;
}

// Of a part of a row: some of its entries.
Race race_of_part(const RandomStream& stream, const RaceRow& part, std::int64_t s) {
  Race race;
  race.start(stream, s);
  race.enter(
      part.neighbours.data(), std::ssize(part.neighbours), [&](std::int64_t k) { return part.weights[k]; },
      [&](std::int64_t k) { return part.neighbours[k]; });
  return race;
}

// Candidates: neighbour and weight, nothing else.
RaceRow candidates_of(Race race) {
  RaceRow row;
  for (const auto& runner : race.arrivals()) {
    row.neighbours.push_back(runner.place);
    row.weights.push_back(runner.weight);
  }
  return row;
}

TEST(Race, IsWonByTheLeastOfAllArrivals) {
  const auto seed = test_seed(4);
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (std::int64_t trial = 0; trial < 2000; ++trial) {
    const auto stream = row_of_trial(seed, trial);
    const auto row = random_row(random, stream);
    std::vector<std::tuple<std::uint64_t, std::uint64_t, std::int64_t>> all;
    for (std::size_t k = 0; k < row.weights.size(); ++k)
      if (row.weights[k] > 0)
        all.emplace_back(exponential(race_word(stream, row.neighbours[k])), row.weights[k],
                         row.neighbours[k]);
    std::ranges::sort(all, [](const auto& a, const auto& b) {
      const auto [e_a, w_a, u_a] = a;
      const auto [e_b, w_b, u_b] = b;
      const Wide left = Wide{e_a} * w_b, right = Wide{e_b} * w_a;
      return left != right ? left < right : u_a < u_b;
    });
    for (const std::int64_t s : {0, 1, 5, 60, 1000}) {
      const auto first = candidates_of(race_of_part(stream, row, s));
      ASSERT_EQ(first.neighbours.size(), std::min(all.size(), static_cast<std::size_t>(s)));
      for (std::size_t k = 0; k < first.neighbours.size(); ++k) {
        ASSERT_EQ(first.neighbours[k], std::get<2>(all[k]));
        ASSERT_EQ(first.weights[k], std::get<1>(all[k]));
      }
    }
  }
}

// A row's entries are dealt to parts; the parts' candidates, and those of candidates, are merged in
// any order, in one race or one after another.
TEST(Race, MergedFromAnySplitInAnyOrderIsTheWholeRows) {
  const auto seed = test_seed(5);
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (std::int64_t trial = 0; trial < 2000; ++trial) {
    const auto stream = row_of_trial(seed, trial);
    const auto row = random_row(random, stream);
    const auto s = static_cast<std::int64_t>(random() % 40);
    const auto whole = candidates_of(race_of_part(stream, row, s));
    std::vector<RaceRow> parts(1 + random() % 9);
    std::vector<std::size_t> order(row.weights.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (trial % 2 == 0) std::ranges::shuffle(order, random);
    for (const auto k : order) {
      auto& part = parts[random() % parts.size()];
      part.neighbours.push_back(row.neighbours[k]);
      part.weights.push_back(row.weights[k]);
    }
    RaceRow merged;
    Race together;
    together.start(stream, s);
    for (const auto& part : parts) {
      const auto candidates = candidates_of(race_of_part(stream, part, s));
      EXPECT_LE(std::ssize(candidates.weights), s) << "no more travels";
      together.enter(
          candidates.neighbours.data(), std::ssize(candidates.neighbours),
          [&](std::int64_t k) { return candidates.weights[k]; },
          [&](std::int64_t k) { return candidates.neighbours[k]; });
      merged.neighbours.insert(merged.neighbours.begin(), candidates.neighbours.begin(),
                               candidates.neighbours.end());
      merged.weights.insert(merged.weights.begin(), candidates.weights.begin(), candidates.weights.end());
      merged = candidates_of(race_of_part(stream, merged, s));
    }
    const auto at_once = candidates_of(std::move(together));
    ASSERT_EQ(at_once.neighbours, whole.neighbours);
    ASSERT_EQ(merged.neighbours, whole.neighbours);
    ASSERT_EQ(at_once.weights, whole.weights);
  }
}

TEST(Race, ArrivalsAreComparedInAllTheirBitsAndTiesGoByNeighbour) {
  const auto seed = test_seed(6);
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  EXPECT_TRUE(is_ahead({2, 4, 1}, {1, 2, 2})) << "a tie";
  EXPECT_FALSE(is_ahead({2, 4, 2}, {1, 2, 1}));
  EXPECT_FALSE(is_ahead({5, 5, 1}, {5, 5, 1}));
  for (int trial = 0; trial < 200000; ++trial) {
    const auto any = [&] { return random() >> (2 + random() % 62) | 1; };
    Runner a = {any(), any(), 1}, b = {any(), any(), 2};
    if (trial % 3 == 0) b = {a.exponential, a.weight, 2};
    if (trial % 6 == 0) b.exponential += trial % 12 == 0 ? 1 : -1;
    const Wide left = Wide{a.exponential} * b.weight, right = Wide{b.exponential} * a.weight;
    ASSERT_EQ(is_ahead(a, b), left <= right);
    ASSERT_EQ(is_ahead(b, a), right < left);
  }
}

TEST(Race, AnEntrysWordIsItsOwn) {
  const RandomStream row = {
      .seed = 5, .purpose = Purpose::kRace, .epoch = 1, .batch = 2, .layer = 3, .row = 4};
  std::set<std::uint64_t> words;
  const auto add = [&](RandomStream of, std::int64_t neighbour) { words.insert(race_word(of, neighbour)); };
  add(row, 9), add(row, 4), add(row, std::int64_t{1} << 40);
  auto other = row;
  other.row = 9, add(other, 4), other = row;
  other.batch = 3, add(other, 9), other = row;
  other.layer = 4, add(other, 9), other = row;
  other.relation = 1, add(other, 9), other = row;
  other.epoch = 2, add(other, 9), other = row;
  other.seed = 6, add(other, 9);
  EXPECT_EQ(words.size(), 9u);
  const auto key = key_of(row);
  const r123::Philox4x32::key_type words_of_key = {{key.low, key.high}};
  auto far = row;
  far.row = std::uint64_t{0xabcd} << 32 | 4;
  const r123::Philox4x32::ctr_type counter = {{4, 9, 0xabcd1234, 2}};
  const auto block = r123::Philox4x32()(counter, words_of_key);
  EXPECT_EQ(race_word(far, std::int64_t{0x1234} << 32 | 9), std::uint64_t{block.v[0]} << 32 | block.v[1]);
  // Together they are those one by one.
  Ids neighbours;
  for (std::int64_t k = 0; k < kBlocksAtOnce; ++k) neighbours.push_back(k * k * k * k * 1000000003);
  for (std::int64_t count = 0; count <= kBlocksAtOnce; ++count) {
    std::uint64_t together[kBlocksAtOnce];
    RaceWords(far).draw(neighbours.data(), count, together);
    for (std::int64_t k = 0; k < count; ++k) EXPECT_EQ(together[k], race_word(far, neighbours[k]));
  }
}

}  // namespace
}  // namespace espalier
