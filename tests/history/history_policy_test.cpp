// Laws of the policy: scores are sums of squares; the stable rows are the first k of a full sort
// by (score, vertex), not a number last, k = p_grad m rounded; of them the computed ones are
// admitted, of the others those that were in the cache, read or computed anew, are evicted;
// nothing else happens.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "history/history_policy_cases.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

// By vertices: a sort of long doubles with ranks for what is not a number.
struct Sorted {
  std::set<std::int64_t> admitted, evicted;

  Sorted(const PolicyCase& of, std::int64_t stable) {
    std::vector<std::tuple<bool, long double, std::int64_t, bool, bool>> rows;
    for (std::int64_t c = 0; c < of.rows(); ++c) {
      long double sum = 0;
      for (std::int64_t j = 0; j < of.gradient.columns; ++j)
        sum += static_cast<long double>(of.gradient(c, j)) * static_cast<long double>(of.gradient(c, j));
      const bool none = std::isnan(sum);
      rows.emplace_back(none, none ? 0.0L : sum, of.vertex(c), of.place[c] < 0, of.seen(c));
    }
    std::ranges::sort(rows);
    for (std::int64_t k = 0; k < std::ssize(rows); ++k) {
      const auto& [none, score, vertex, is_cached, seen] = rows[k];
      if (k < stable && !is_cached) admitted.insert(vertex);
      if (k >= stable && seen) evicted.insert(vertex);
    }
  }
};

std::set<std::int64_t> vertices_of(const std::vector<HistoryCandidate>& rows) {
  std::set<std::int64_t> vertices;
  for (const auto& row : rows) vertices.insert(row.vertex);
  EXPECT_EQ(vertices.size(), rows.size()) << "each once";
  return vertices;
}

void expect_choice(const PolicyCase& of, double p_grad, std::int64_t stable) {
  SCOPED_TRACE(fmt::format("rows {} p_grad {}", of.rows(), p_grad));
  const auto candidates = candidates_of(Cpu{1}, of);
  EXPECT_EQ(stable_count(of.rows(), stable_share(p_grad)), stable);
  const auto choice = choose_history(candidates, stable_share(p_grad));
  const Sorted expected(of, stable);
  EXPECT_EQ(vertices_of(choice.admitted), expected.admitted);
  EXPECT_EQ(vertices_of(choice.evicted), expected.evicted);
  for (const auto& row : choice.admitted) EXPECT_EQ(of.computed[row.place], row.vertex);
  for (const auto& row : choice.evicted)
    EXPECT_EQ(row.cached() ? of.cached[~row.place] : of.computed[row.place], row.vertex);
  const auto by_column = [&](const HistoryCandidate& row) {
    return std::ranges::find(of.place, row.place) - of.place.begin();
  };
  EXPECT_TRUE(std::ranges::is_sorted(choice.admitted, {}, by_column));
  EXPECT_TRUE(std::ranges::is_sorted(choice.evicted, {}, by_column));
}

TEST(HistoryPolicy, StableRowsAreTheFirstOfASort) {
  const auto seed = test_seed(11);
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (const std::int64_t rows : {1, 2, 3, 10, 257})
    for (const double p_grad : {0.0, 0.1, 0.3, 0.5, 0.9, 1.0})
      for (const double cached : {0.0, 0.4, 1.0}) {
        const PolicyCase of(rows, 13, cached, random);
        // Binary fractions of these products are never a half, but for .5: rounded up there.
        expect_choice(of, p_grad,
                      static_cast<std::int64_t>(std::floor(p_grad * static_cast<double>(rows) + 0.5)));
      }
}

TEST(HistoryPolicy, EqualScoresGoByVertex) {
  std::mt19937_64 random(test_seed(12));
  for (const std::int64_t stable : {1, 20, 39}) {
    PolicyCase of(40, 5, 0.5, random);
    for (std::int64_t c = 0; c < 40; ++c) of.make_row(c, c % 3 == 0 ? -0.0f : 2.5f * (c % 2 == 0 ? 1 : -1));
    expect_choice(of, static_cast<double>(stable) / 40, stable);
  }
}

TEST(HistoryPolicy, WhatIsNotANumberComesLast) {
  std::mt19937_64 random(test_seed(13));
  for (const std::int64_t stable : {0, 3, 8, 10, 15, 20}) {
    PolicyCase of(20, 4, 0.5, random);
    for (const std::int64_t c : {1, 5, 6, 12, 19}) of.gradient(c, c % 4) = c % 2 == 0 ? -NAN : NAN;
    for (const std::int64_t c : {2, 13}) of.gradient(c, 1) = INFINITY;
    expect_choice(of, static_cast<double>(stable) / 20, stable);
  }
  EXPECT_LT(score_bits(INFINITY), score_bits(NAN));
  EXPECT_EQ(score_bits(-NAN), score_bits(NAN));
  EXPECT_LT(score_bits(0.0), score_bits(1e-300));
}

TEST(HistoryPolicy, NothingOfNothing) {
  std::mt19937_64 random(1);
  for (const double p_grad : {0.0, 0.5, 1.0}) expect_choice(PolicyCase(0, 3, 0.5, random), p_grad, 0);
  const PolicyCase narrow(4, 0, 0.0, random);
  EXPECT_EQ(choose_history(candidates_of(Cpu{1}, narrow), stable_share(1)).admitted.size(), 4u);
}

// 0.9 is not a binary number: 2^31 - 1 rows still count as in exact arithmetic of P.
TEST(HistoryPolicy, CountsAreExactForManyRows) {
  const auto share = stable_share(0.9);
  EXPECT_EQ(share, 3865470566u);  // .4 more
  EXPECT_EQ(stable_share(0.8), 3435973837u) << "of ..836.8";
  for (const std::int64_t m : {std::int64_t{1}, std::int64_t{999'999}, (std::int64_t{1} << 31) - 1}) {
    const auto product = static_cast<unsigned __int128>(m) * share + (std::uint64_t{1} << 31);
    EXPECT_EQ(stable_count(m, share), static_cast<std::int64_t>(product >> 32));
    EXPECT_EQ(stable_count(m, stable_share(1)), m);
    EXPECT_EQ(stable_count(m, stable_share(0)), 0);
  }
}

TEST(HistoryPolicy, ScoresAreSumsOfSquaresForAnyNumberOfThreads) {
  std::mt19937_64 random(test_seed(14));
  for (const std::int64_t width : {1, 7, 8, 9, 64, 100}) {
    const PolicyCase of(300, width, 0.3, random);
    const auto candidates = candidates_of(Cpu{1}, of);
    EXPECT_EQ(candidates_of(Cpu{3}, of), candidates);
    for (std::int64_t c = 0; c < of.rows(); ++c) {
      long double sum = 0;
      for (std::int64_t j = 0; j < width; ++j)
        sum += static_cast<long double>(of.gradient(c, j)) * static_cast<long double>(of.gradient(c, j));
      EXPECT_NEAR(std::bit_cast<double>(candidates[c].score), static_cast<double>(sum),
                  static_cast<double>(width) * 0x1p-52 * static_cast<double>(sum));
      EXPECT_EQ(candidates[c].vertex, of.vertex(c));
    }
  }
}

}  // namespace
}  // namespace espalier
