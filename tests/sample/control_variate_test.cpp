// Laws of what a control variate adds: over all samples of a row, by enumeration, the corrected sum
// of any rows h, with any S and h^, has the mean of the exact one, for draws without replacement
// and for independent ones; with the samplers of the program the columns in S count as in A for
// every draw, so with h^ = h and all columns in S each sum is exact; with none nothing is added.
#include "espalier/sample/control_variate.hpp"

#include <gtest/gtest.h>

#include <bit>

#include "dense/random_matrices.hpp"
#include "espalier/dense/spmm.hpp"
#include "mpi_test.hpp"
#include "sample/sampling_laws.hpp"

namespace espalier {
namespace {

Block block_of(std::int64_t columns, const std::vector<std::vector<std::pair<int, float>>>& rows) {
  Block block;
  block.columns = columns;
  for (const auto& row : rows) {
    for (const auto& [column, value] : row) {
      block.indices.push_back(column);
      block.values.push_back(value);
    }
    block.indptr.push_back(std::ssize(block.indices));
    ++block.rows;
  }
  return block;
}

// Row 0 of vertex 10 has drawn 4 and 7 of 4, 5, 7, 9; row 1 of vertex 5 has all it has, 10.
TEST(ControlVariate, ByHand) {
  const Ids sources = {10, 5, 4, 7}, vertices = {10, 5, 4, 7, 9};
  const auto sampled = block_of(4, {{{2, 0.5f}, {3, 0.5f}}, {{0, 1.0f}}});
  const auto whole = block_of(5, {{{2, 0.25f}, {1, 0.25f}, {3, 0.25f}, {4, 0.25f}}, {{0, 1.0f}}});
  const std::vector<std::uint8_t> known = {1, 0, 1, 0, 1};  // 10, 4 and 9
  const auto variate = control_variate(sampled, sources, whole, vertices, known);
  EXPECT_EQ(variate.positions, Ids({2, 4})) << "10 is needed by a row that is whole";
  EXPECT_EQ(std::vector(variate.block.indptr.begin(), variate.block.indptr.end()), Ids({0, 2, 2}));
  EXPECT_EQ(variate.block.columns, 2);
  EXPECT_EQ(variate.block.indices[0], 0);
  EXPECT_EQ(variate.block.values[0], -0.25f) << "1/4 - 1/2";
  EXPECT_EQ(variate.block.indices[1], 1);
  EXPECT_EQ(variate.block.values[1], 0.25f);
  EXPECT_EQ(variate.entries, 5);
  EXPECT_EQ(variate.known, 3);
}

// A row of seven neighbours with entries a, of which `drawn` has bits.
struct OneRow {
  static constexpr int kNeighbours = 7, kWidth = 3;
  std::vector<float> a;
  Matrix<double> h, kept;
  std::vector<std::uint8_t> known = {0};  // of the row's own vertex, then its neighbours
  Ids vertices = {100};

  explicit OneRow(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    h = random_matrix<double>(kNeighbours, kWidth, random);
    kept = random_matrix<double>(kNeighbours, kWidth, random);
    for (int k = 0; k < kNeighbours; ++k) {
      a.push_back(static_cast<float>(1 + random() % 8) / 8);
      known.push_back(static_cast<std::uint8_t>(random() % 3 != 0));
      vertices.push_back(3 * k);
    }
  }
  /// B H + C H^ of the sample of these bits, whose values are a / probability.
  std::vector<double> corrected(unsigned drawn, double probability) const {
    std::vector<std::pair<int, float>> picks, all;
    Ids sources = {100};
    for (int k = 0; k < kNeighbours; ++k) {
      all.emplace_back(k + 1, a[k]);
      if ((drawn >> k & 1) == 0) continue;
      picks.emplace_back(static_cast<int>(sources.size()), static_cast<float>(a[k] / probability));
      sources.push_back(vertices[k + 1]);
    }
    const auto sampled = block_of(std::ssize(sources), {picks}), whole = block_of(kNeighbours + 1, {all});
    const auto variate = control_variate(sampled, sources, whole, vertices, known);
    std::vector<double> sum(kWidth, 0);
    for (int j = 0; j < kWidth; ++j) {
      for (const auto& [column, value] : picks) sum[j] += value * h(sources[column] / 3, j);
      for (std::int64_t e = 0; e < variate.block.entries(); ++e)
        sum[j] += variate.block.values[e] * kept(variate.positions[variate.block.indices[e]] - 1, j);
    }
    return sum;
  }
  template <class Law>
  void expect_unbiased(const Law& probability_of, double probability) const {
    std::vector<double> mean(kWidth, 0);
    double total = 0, spread = 0;
    for (unsigned drawn = 0; drawn < 1u << kNeighbours; ++drawn) {
      const double p = probability_of(drawn);
      if (p == 0) continue;
      const auto sum = corrected(drawn, probability);
      for (int j = 0; j < kWidth; ++j) mean[j] += p * sum[j];
      total += p;
      spread += p * sum[0] * sum[0];
    }
    EXPECT_NEAR(total, 1, 1e-12);
    for (int j = 0; j < kWidth; ++j) {
      double exact = 0;
      for (int k = 0; k < kNeighbours; ++k) exact += a[k] * h(k, j);
      EXPECT_NEAR(mean[j], exact, 1e-6) << "column " << j;
    }
    EXPECT_GT(spread - mean[0] * mean[0], 1e-3) << "samples differ: the law is not that of one of them";
  }
};

TEST(ControlVariate, IsUnbiasedOverAllSamplesOfARow) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const OneRow row(test_seed(seed));
    for (const int s : {1, 2, 5}) {
      const double share = s / static_cast<double>(OneRow::kNeighbours);
      double subsets = 1;
      for (int k = 0; k < s; ++k) subsets = subsets * (OneRow::kNeighbours - k) / (k + 1);
      row.expect_unbiased([&](unsigned drawn) { return std::popcount(drawn) == s ? 1 / subsets : 0.0; },
                          share);
      row.expect_unbiased(
          [&](unsigned drawn) {
            return std::pow(share, std::popcount(drawn)) *
                   std::pow(1 - share, OneRow::kNeighbours - std::popcount(drawn));
          },
          share);
    }
  }
}

struct Drawn {
  Minibatch minibatch, whole;
};

Drawn draw(const SparseMatrix& m, const char* kind, Aggregation aggregation, std::int64_t number) {
  Ids seeds;
  for (auto v = number; v < m.rows(); v += 13) seeds.push_back(v);
  const SeedBatch batch = {number, seeds};
  return {std::move(make_sampler(kind, m, {.fanout = {3}, .aggregation = aggregation})
                        ->sample({1}, {&batch, 1}, 3, 1)[0]),
          std::move(make_sampler("graphsage", m, {.fanout = {-1}, .aggregation = aggregation})
                        ->sample({1}, {&batch, 1}, 0, 0)[0])};
}

TEST(ControlVariate, ColumnsInSCountAsInTheMatrixForEveryDraw) {
  const Grid grid(test_world(), 1);
  const auto a = random_matrix(grid, 200, 9, false), gcn = normalize_with_self_loops(a);
  for (const char* kind : {"graphsage", "labor"})
    for (const auto aggregation : {Aggregation::kMean, Aggregation::kMatrix})
      for (std::int64_t number = 0; number < 6; ++number) {
        const auto [minibatch, whole] =
            draw(aggregation == Aggregation::kMean ? a : gcn, kind, aggregation, number);
        std::vector<std::uint8_t> known;  // none, all, some
        for (const auto v : whole.vertices)
          known.push_back(static_cast<std::uint8_t>(number % 3 == 1 || (number % 3 == 2 && v % 3 != 0)));
        const auto variate =
            control_variate(minibatch.blocks[0], minibatch.vertices, whole.blocks[0], whole.vertices, known);
        if (number % 3 == 0) EXPECT_EQ(variate.block.entries(), 0);
        if (number % 3 != 0) EXPECT_GT(variate.block.entries(), 20);
        for (std::int64_t r = 0; r < minibatch.blocks[0].rows; ++r) {
          auto expected = row_of(minibatch, minibatch.blocks[0], r), found = expected;
          const auto exact = row_of(whole, whole.blocks[0], r);
          for (const auto& [u, value] : exact)
            if (known[std::ranges::find(whole.vertices, u) - whole.vertices.begin()] != 0)
              expected[u] = value;
          for (auto k = variate.block.row_begin(r); k < variate.block.row_end(r); ++k)
            found[whole.vertices[variate.positions[variate.block.indices[k]]]] += variate.block.values[k];
          EXPECT_EQ(found.size(), expected.size());
          for (const auto& [u, value] : expected) EXPECT_NEAR(found[u], value, 1e-7) << u;
        }
      }
}

TEST(ControlVariate, LeavesRowsAloneThatAreTakenWhole) {
  const Grid grid(test_world(), 1);
  const auto a = random_matrix(grid, 200, 9, false);
  for (const char* kind : {"graphsage", "labor"}) {
    const Ids seeds = {3, 11, 57, 100};
    const SeedBatch batch = {0, seeds};
    const auto all = std::move(make_sampler(kind, a, {.fanout = {500}})->sample({1}, {&batch, 1}, 3, 1)[0]);
    const auto same =
        std::move(make_sampler("graphsage", a, {.fanout = {-1}})->sample({1}, {&batch, 1}, 0, 0)[0]);
    const std::vector<std::uint8_t> known(same.vertices.size(), 1);
    const auto variate = control_variate(all.blocks[0], all.vertices, same.blocks[0], same.vertices, known);
    EXPECT_EQ(variate.block.entries(), 0) << kind;
    EXPECT_EQ(variate.known, same.blocks[0].entries());
  }
}

}  // namespace
}  // namespace espalier
