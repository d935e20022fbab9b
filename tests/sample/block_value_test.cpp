// ranks: 1
// Laws: over all ordered outcomes of a weighted draw, with their exact probabilities, the block's
// row is the full row, and of means the weighted mean, whose values sum to 1 in every draw (Des
// Raj's estimator is unbiased); the sampler's values are that estimator's, with the diagonal of a
// matrix outside of the draw; the smallest positive weight can be drawn. Weights count within their
// row, or their relation's part of it: what others are changes no bit.
#include "espalier/sample/block_value.hpp"

#include <gtest/gtest.h>

#include "espalier/base/fixed_point.hpp"
#include "mpi_test.hpp"
#include "sample/ordered_draws.hpp"
#include "sample/sampling_laws.hpp"
#include "typed_graph.hpp"

namespace espalier {
namespace {

const std::vector<std::vector<std::uint64_t>>& rows_of_weights() {
  static const std::vector<std::vector<std::uint64_t>> rows = {
      {5, 1, 3, 2}, {7, 7, 7, 7, 7}, {1, 1000, 30, 2, 9}, {4294967295u, 3000000000u, 1u << 20, 1u << 31}};
  return rows;
}

TEST(DesRaj, TheExpectationIsTheFullRow) {
  const std::vector<float> entries = {0.75f, -2.0f, 0.1f, 3.0f, 1.25f};  // need not be the weights
  for (const auto& weights : rows_of_weights())
    for (std::size_t s = 1; s < weights.size(); ++s) {
      std::vector<double> expectation(weights.size(), 0.0);
      double all = 0;
      for_each_draw(weights, static_cast<std::int64_t>(s),
                    [&](const auto& drawn, double probability, const auto& left) {
                      all += probability;
                      for (std::size_t j = 0; j < s; ++j)
                        expectation[drawn[j]] +=
                            probability *
                            scaled_value(entries[drawn[j]], des_raj_factor(left[j], weights[drawn[j]],
                                                                           static_cast<std::int64_t>(j + 1),
                                                                           static_cast<std::int64_t>(s)));
                    });
      EXPECT_NEAR(all, 1, 1e-12);
      for (std::size_t k = 0; k < weights.size(); ++k)
        EXPECT_NEAR(expectation[k] / entries[k], 1, 1e-6)
            << "entry " << k << " of " << weights.size() << ", s " << s;
    }
}

TEST(DesRaj, TheExpectationOfSharesIsTheWeightedMean) {
  for (const auto& weights : rows_of_weights())
    for (std::size_t s = 1; s < weights.size(); ++s) {
      std::vector<double> expectation(weights.size(), 0.0);
      for_each_draw(weights, static_cast<std::int64_t>(s),
                    [&](const auto& drawn, double probability, const auto& left) {
                      double sum = 0;
                      for (std::size_t j = 0; j < s; ++j) {
                        const double share =
                            des_raj_share(left[j], weights[drawn[j]], left[0],
                                          static_cast<std::int64_t>(j + 1), static_cast<std::int64_t>(s));
                        sum += share;
                        expectation[drawn[j]] += probability * share;
                      }
                      EXPECT_NEAR(sum, 1, 1e-6);
                    });
      const auto total = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
      for (std::size_t k = 0; k < weights.size(); ++k)
        EXPECT_NEAR(expectation[k] / weight_share(weights[k], total), 1, 1e-6)
            << "entry " << k << " of " << weights.size() << ", s " << s;
    }
}

// Row 0 holds `values` in columns 0, 1, 2, ...; the other rows are empty.
SparseMatrix one_row(const Grid& grid, const std::vector<float>& values) {
  std::vector<Ids> rows(values.size());
  rows[0].resize(values.size());
  std::iota(rows[0].begin(), rows[0].end(), std::int64_t{0});
  return matrix_of(grid, rows, values);
}

// What the sampler put into row 0, by column.
Row sample_row(Sampler& sampler, std::uint64_t seed, std::uint64_t epoch) {
  Row row;
  const auto visit = [&](const Minibatch& minibatch) { row = row_of(minibatch, minibatch.blocks[0], 0); };
  sample_batches(sampler, {0}, 1, seed, visit, epoch);
  return row;
}

constexpr DrawLaw kDrawLaws[] = {DrawLaw::kIts, DrawLaw::kRace};

// Every outcome of the sampler is one that the enumeration knows, bit for bit, and comes as often
// as its probability says (5 standard deviations), however draws are made.
void expect_outcomes(const SparseMatrix& a, SamplerShape shape, const std::map<Row, double>& law,
                     std::uint64_t seed) {
  SCOPED_TRACE(seed);
  constexpr double kTrials = 20000;
  for (const auto draw : kDrawLaws) {
    SCOPED_TRACE(static_cast<int>(draw));
    shape.draw = draw;
    const auto sampler = make_sampler("graphsage", a, shape);
    std::map<Row, double> seen;
    for (std::uint64_t epoch = 0; epoch < kTrials; ++epoch) ++seen[sample_row(*sampler, seed, epoch)];
    for (const auto& [row, count] : seen) EXPECT_TRUE(law.contains(row)) << "not an outcome";
    for (const auto& [row, probability] : law)
      EXPECT_NEAR(seen[row], kTrials * probability, 5 * std::sqrt(kTrials * probability * (1 - probability)));
  }
}

const std::vector<float>& entries_of_row() {
  static const std::vector<float> values = {0.6f, 0.25f, 1.7f, 0.5f, 0.9f};
  return values;
}

std::vector<std::uint64_t> weights_of_row() {
  std::vector<std::uint64_t> weights;
  for (const float value : entries_of_row()) weights.push_back(fixed_point_weight(value, 31));
  return weights;
}

TEST(DesRaj, TheSamplerGivesTheEnumeratedValues) {
  const Grid grid(test_world(), 1);
  const auto& values = entries_of_row();
  auto weights = weights_of_row();
  weights[0] = 0;  // the diagonal is not drawn
  std::map<Row, double> law;
  for_each_draw(weights, 2, [&](const auto& drawn, double probability, const auto& left) {
    Row row = {{0, 0.6f}};
    for (std::size_t j = 0; j < 2; ++j)
      row[static_cast<std::int64_t>(drawn[j])] = scaled_value(
          values[drawn[j]], des_raj_factor(left[j], weights[drawn[j]], static_cast<std::int64_t>(j + 1), 2));
    law[row] += probability;
  });
  ASSERT_EQ(law.size(), 12u) << "values tell the order of the draws";
  expect_outcomes(one_row(grid, values),
                  {.fanout = {2}, .weighted = true, .aggregation = Aggregation::kMatrix}, law, test_seed(2));
}

TEST(DesRaj, TheSamplerGivesTheEnumeratedSharesOfMeans) {
  const Grid grid(test_world(), 1);
  const auto weights = weights_of_row();
  std::map<Row, double> law;
  for_each_draw(weights, 2, [&](const auto& drawn, double probability, const auto& left) {
    Row row;
    for (std::size_t j = 0; j < 2; ++j)
      row[static_cast<std::int64_t>(drawn[j])] =
          des_raj_share(left[j], weights[drawn[j]], left[0], static_cast<std::int64_t>(j + 1), 2);
    law[row] += probability;
  });
  ASSERT_EQ(law.size(), 20u) << "values tell the order of the draws";
  expect_outcomes(one_row(grid, entries_of_row()), {.fanout = {2}, .weighted = true}, law, test_seed(3));
}

TEST(Weights, TheSmallestPositiveOneCanBeDrawn) {
  const Grid grid(test_world(), 1);
  const auto a = one_row(grid, {0, 1e6f, 1e-40f, 0, 1e-30f});
  for (const auto aggregation : {Aggregation::kMean, Aggregation::kMatrix})
    for (const auto draw : kDrawLaws) {
      const auto sampler = make_sampler(
          "graphsage", a, {.fanout = {2}, .weighted = true, .draw = draw, .aggregation = aggregation});
      std::set<std::int64_t> picked;
      for (std::uint64_t epoch = 0; epoch < 100; ++epoch)
        for (const auto& [column, value] : sample_row(*sampler, 1, epoch)) {
          EXPECT_TRUE(std::isfinite(value));
          picked.insert(column);
        }
      const auto diagonal =
          aggregation == Aggregation::kMatrix ? std::set<std::int64_t>{0} : std::set<std::int64_t>{};
      std::set<std::int64_t> expected = {1, 2, 4};
      expected.insert(diagonal.begin(), diagonal.end());
      EXPECT_EQ(picked, expected);
    }
}

// Rows 0, 1 and 3 are 1 and 3 times 1, some 1e12, some 1e-12; row 2 has denormal numbers and the
// largest that there is.
SparseMatrix far_apart(const Grid& grid) {
  return matrix_of(
      grid, {{1, 2}, {0, 4}, {0, 1, 2}, {1, 2}, {}},
      {1, 3, 0x1p40f, 0x3p40f, 1e-45f, std::numeric_limits<float>::max(), 3e-45f, 0x1p-40f, 0x3p-40f});
}

TEST(Weights, OfARowAreDrawnAndEvaluatedWhateverOtherRowsWeigh) {
  const Grid grid(test_world(), 1);
  const auto a = far_apart(grid);
  expect_outcomes(a, {.fanout = {1}, .weighted = true}, {{{{1, 1.0f}}, 0.25}, {{{2, 1.0f}}, 0.75}},
                  test_seed(4));
  const auto whole = sample_one("graphsage", a, {.fanout = {-1}, .weighted = true}, {0, 1, 2, 3, 4});
  const auto row = [&](std::int64_t v) { return row_of(whole, whole.blocks[0], v); };
  EXPECT_EQ(row(0), (Row{{1, 0.25f}, {2, 0.75f}}));
  EXPECT_EQ(row(1), (Row{{0, 0.25f}, {4, 0.75f}}));
  EXPECT_EQ(row(3), (Row{{1, 0.25f}, {2, 0.75f}}));
  EXPECT_EQ(row(4), Row{});
  for (const auto& [column, share] : row(2)) {
    EXPECT_GT(share, 0) << "no support is lost";
    EXPECT_NEAR(share, column == 1 ? 1 : 0, std::ldexp(9, -59)) << "fixed_point_weight's bound";
  }
}

// Whatever one weight is, the others are drawn by theirs: after the heaviest, 1:3.
TEST(Weights, FarBelowTheHeaviestOfTheirRowAreDrawnByWhatTheyAre) {
  const Grid grid(test_world(), 1);
  const auto a = matrix_of(grid, {{0, 1, 2}, {}, {}}, {1, 3, 1e12f});
  const auto sampler = make_sampler("graphsage", a, {.fanout = {2}, .weighted = true});
  constexpr int kTrials = 4000;
  int heavier = 0;
  for (int epoch = 0; epoch < kTrials; ++epoch)
    heavier += sample_row(*sampler, 6, static_cast<std::uint64_t>(epoch)).contains(1);
  EXPECT_NEAR(heavier, 0.75 * kTrials, 5 * std::sqrt(kTrials * 0.75 * 0.25));
}

// Multiplies each row, or each relation's part of one, by a power of two of its own.
SparseMatrix scaled_by_parts(SparseMatrix a) {
  const auto columns = a.columns.view();
  for (std::int64_t v = 0; v < a.local.rows; ++v)
    for (auto k = a.local.row_begin(v); k < a.local.row_end(v); ++k) {
      const auto part = a.columns.typed() ? columns.relation(a.local.indices[k]) : 0;
      a.local.values[k] = std::ldexp(a.local.values[k], static_cast<int>((v * 37 + part * 101) % 200) - 100);
    }
  return a;
}

TEST(Weights, ScalingARowOrARelationsPartOfOneChangesNoBitOfSharesAndPicks) {
  const Grid grid(test_world(), 1);
  const auto schema = typed_schema(60);
  Ids seeds(60);
  std::iota(seeds.begin(), seeds.end(), std::int64_t{0});
  for (const bool typed : {false, true}) {
    const auto a = typed ? typed_matrix(grid, schema, typed_graph<std::int32_t>(schema, 12, true, 5),
                                        row_ranges(grid, 60, Topology::kReplicated))
                         : random_matrix(grid, 60, 12, true);
    const auto scaled = scaled_by_parts(a);
    for (const std::int64_t fanout : {1, 3, -1})
      for (const auto draw : kDrawLaws) {
        SCOPED_TRACE(testing::Message() << "typed " << typed << " fanout " << fanout);
        SamplerShape shape = {.fanout = {fanout}, .weighted = true, .draw = draw};
        if (typed) shape.relation_fanout = {std::vector<std::int64_t>(schema.relations().size(), fanout)};
        const auto plain = sample_one("graphsage", a, shape, seeds),
                   other = sample_one("graphsage", scaled, shape, seeds);
        const auto &block = plain.blocks[0], &of_other = other.blocks[0];
        ASSERT_EQ(of_other.entries(), block.entries());
        EXPECT_GT(block.entries(), 40);
        EXPECT_TRUE(std::ranges::equal(plain.vertices, other.vertices));
        EXPECT_TRUE(std::equal(block.indices, block.indices + block.entries(), of_other.indices));
        const float *const values = block.values, *const others = of_other.values;
        EXPECT_TRUE(std::equal(values, values + block.entries(), others));
      }
  }
}

}  // namespace
}  // namespace espalier
