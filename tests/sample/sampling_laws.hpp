// What the samplers' laws share: small matrices, the same seeds sampled again and again, and checks
// of what comes out: the layers of a minibatch, the law of draws without replacement, the mean of
// many blocks. One rank, grid 1 x 1.
//
// Random checks are deterministic for a given test_seed; a check's confidence says how seldom
// another seed would raise a false alarm.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <vector>

#include "espalier/sample/sampler.hpp"
#include "random_graph.hpp"
#include "sample/ordered_draws.hpp"

namespace espalier {

using SparseMatrix = DistCsr<std::int32_t>;
using Ids = std::vector<std::int64_t>;
using Row = std::map<std::int64_t, float>;       ///< value by global column
using Weights = std::map<std::int64_t, double>;  ///< weight or factor by global column

constexpr SamplerMode kModes[] = {SamplerMode::kPaper, SamplerMode::kReference, SamplerMode::kDebiased};

// ---- Matrices -----------------------------------------------------------------------------------

/// The n x n matrix with these columns in its rows; ones, or `values` row after row.
inline SparseMatrix matrix_of(const Grid& grid, const std::vector<Ids>& rows,
                              const std::vector<float>& values = {}) {
  Csr<std::int32_t> a;
  a.rows = a.columns = std::ssize(rows);
  for (const auto& row : rows) {
    for (const auto u : row) a.indices.push_back(static_cast<std::int32_t>(u));
    a.indptr.push_back(std::ssize(a.indices));
  }
  a.values.assign(values.begin(), values.end());
  return distribute(grid, a, Topology::kPartitioned);
}

/// random_graph, with its isolated, full and self-loop rows, as a distributed matrix.
inline SparseMatrix random_matrix(const Grid& grid, std::int64_t n, std::int64_t degree, bool weighted,
                                  std::uint64_t seed = 5) {
  return distribute(grid, random_graph<std::int32_t>(n, degree, weighted, seed), Topology::kPartitioned);
}

inline Row row_of(const SparseMatrix& m, std::int64_t v) {
  Row row;
  for (auto k = m.local.row_begin(v); k < m.local.row_end(v); ++k)
    row[m.local.indices[static_cast<std::size_t>(k)]] = m.local.values[static_cast<std::size_t>(k)];
  return row;
}

/// Row r of a block of the minibatch. Checks that columns are within the block and none
/// comes twice.
inline Row row_of(const Minibatch& minibatch, const BlockView<>& block, std::int64_t r) {
  Row row;
  for (auto k = block.row_begin(r); k < block.row_end(r); ++k) {
    const auto column = block.indices[k];
    EXPECT_LT(column, block.columns);
    EXPECT_TRUE(row.emplace(minibatch.vertices[static_cast<std::size_t>(column)], block.values[k]).second)
        << "an entry came twice";
  }
  return row;
}

inline double total_of(const Weights& weights) {
  double total = 0;
  for (const auto& [u, weight] : weights) total += weight;
  return total;
}

// ---- Sampling -----------------------------------------------------------------------------------

/// Samples the same seeds as batches 0 .. count-1 of an epoch, in bulks of 500;
/// visit(minibatch) for each.
template <class Visit>
void sample_batches(Sampler& sampler, const Ids& seeds, std::int64_t count, std::uint64_t seed,
                    const Visit& visit, std::uint64_t epoch = 0) {
  for (std::int64_t first = 0; first < count; first += 500) {
    std::vector<SeedBatch> batches;
    for (auto b = first; b < std::min(count, first + 500); ++b) batches.push_back({b, seeds});
    for (const auto& minibatch : sampler.sample({1}, batches, seed, epoch)) visit(minibatch);
  }
}

inline Minibatch sample_one(const char* kind, const SparseMatrix& m, const SamplerShape& shape,
                            const Ids& seeds) {
  const SeedBatch batch = {7, seeds};
  return std::move(make_sampler(kind, m, shape)->sample({1}, {&batch, 1}, 3, 1)[0]);
}

/// What a minibatch of one layer multiplied each picked column of `m` by, from any entry
/// that is not 0.
inline Weights factors_of(const SparseMatrix& m, const Ids& seeds, const Minibatch& minibatch) {
  Weights factors;
  for (std::int64_t r = 0; r < std::ssize(seeds); ++r) {
    const auto full = row_of(m, seeds[static_cast<std::size_t>(r)]);
    for (const auto& [u, value] : row_of(minibatch, minibatch.blocks[0], r))
      if (full.at(u) != 0) factors[u] = static_cast<double>(value) / full.at(u);
  }
  return factors;
}

// ---- The layers of a minibatch ------------------------------------------------------------------

/// The step from a frontier to its sources, which begin with the frontier.
struct SampledLayer {
  std::span<const std::int64_t> frontier, sources;  ///< global vertices
  const BlockView<>& block;                         ///< frontier x sources
  std::int64_t fanout;
  std::set<std::int64_t> picks;  ///< as far as they show: new sources, and columns with an entry
};

/// Exact. A layer-wise sampler's row holds the entries of m's row in the picked columns, all of
/// them and no other.
inline void check_extraction(const SparseMatrix& m, const Minibatch& minibatch, const SampledLayer& layer) {
  for (std::size_t r = 0; r < layer.frontier.size(); ++r) {
    std::set<std::int64_t> expected, extracted;
    for (const auto& [u, value] : row_of(m, layer.frontier[r]))
      if (layer.picks.contains(u)) expected.insert(u);
    for (const auto& [u, value] : row_of(minibatch, layer.block, static_cast<std::int64_t>(r)))
      extracted.insert(u);
    EXPECT_EQ(extracted, expected) << "row of vertex " << layer.frontier[r];
  }
}

/// Exact. The vertices begin with the seeds and are distinct; from the last block to the first, the
/// sources of a layer are its frontier and then new vertices ascending, and the frontier of the
/// next. visit(layer) for each.
template <class Visit>
void check_layers(const Minibatch& minibatch, const Ids& fanout, const Ids& seeds, const Visit& visit) {
  const std::span<const std::int64_t> vertices = minibatch.vertices;
  ASSERT_EQ(minibatch.blocks.size(), fanout.size());
  ASSERT_TRUE(std::ranges::equal(vertices.first(seeds.size()), seeds));
  EXPECT_EQ(std::set(vertices.begin(), vertices.end()).size(), vertices.size());
  auto rows = seeds.size();
  for (std::size_t l = 0; l < fanout.size(); ++l) {
    const auto& block = minibatch.blocks[fanout.size() - 1 - l];
    ASSERT_EQ(block.rows, static_cast<std::int64_t>(rows)) << "destinations are a prefix of sources";
    ASSERT_GE(block.columns, block.rows);
    ASSERT_LE(block.columns, std::ssize(vertices));
    const auto columns = static_cast<std::size_t>(block.columns);
    const auto fresh = vertices.subspan(rows, columns - rows);
    EXPECT_TRUE(std::is_sorted(fresh.begin(), fresh.end()));
    SampledLayer layer = {
        vertices.first(rows), vertices.first(columns), block, fanout[l], {fresh.begin(), fresh.end()}};
    for (const auto column : copy_of(block).indices)
      layer.picks.insert(vertices[static_cast<std::size_t>(column)]);
    visit(layer);
    rows = columns;
  }
  EXPECT_EQ(rows, vertices.size());
}

// ---- The law of draws ---------------------------------------------------------------------------

/// A chi-square variable exceeds this with probability 1e-6 (Wilson and Hilferty 1931).
inline double chi_square_limit(double degrees) {
  return degrees * std::pow(1 - 2 / (9 * degrees) + 4.7534 * std::sqrt(2 / (9 * degrees)), 3);
}

/// Do the counts follow the probabilities, which must sum to 1? Cells that expect fewer than 10 are
/// one cell, which must not hold too many. False alarm: the chi-square test once in 10^6, the rare
/// cell less often (6 standard deviations and 6).
inline void expect_law(const std::vector<double>& law, const std::vector<std::int64_t>& counts) {
  const auto trials = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  EXPECT_NEAR(std::accumulate(law.begin(), law.end(), 0.0), 1, 1e-9);
  double statistic = 0, cells = 0, rare = 0, rare_seen = 0;
  for (std::size_t k = 0; k < law.size(); ++k) {
    const double expected = law[k] * trials, seen = static_cast<double>(counts[k]);
    if (expected < 10) {
      rare += expected;
      rare_seen += seen;
      continue;
    }
    statistic += std::pow(seen - expected, 2) / expected;
    ++cells;
  }
  EXPECT_GE(cells, 2);
  EXPECT_LT(statistic, chi_square_limit(rare > 0 ? cells : cells - 1));
  EXPECT_LE(rare_seen, rare + 6 * std::sqrt(rare) + 6);
}

/// The same by outcome; none that the law does not know may come.
template <class Key>
void expect_law(const std::map<Key, double>& law, const std::map<Key, std::int64_t>& seen) {
  std::vector<double> probabilities;
  std::vector<std::int64_t> counts;
  for (const auto& [key, probability] : law) {
    probabilities.push_back(probability);
    const auto found = seen.find(key);
    counts.push_back(found == seen.end() ? 0 : found->second);
  }
  for (const auto& [key, count] : seen)
    EXPECT_TRUE(law.contains(key)) << testing::PrintToString(key) << " is no outcome, it came " << count;
  expect_law(probabilities, counts);
}

/// Draws of s columns one after another: which, with Des Raj's factor of each, and how probable.
struct Outcome {
  Weights factors;
  double probability;
};

inline bool alike(const Weights& x, const Weights& y, double tolerance) {
  return std::ranges::equal(x, y, [&](const auto& a, const auto& b) {
    return a.first == b.first && std::abs(a.second / b.second - 1) < tolerance;
  });
}

/// All outcomes of s draws without replacement; orders of draws that no factor tells apart are one,
/// with their mean factors.
inline std::vector<Outcome> law_of(const Weights& weights, std::size_t s) {
  std::vector<std::int64_t> columns;
  std::vector<double> of_columns;
  for (const auto& [u, weight] : weights) {
    columns.push_back(u);
    of_columns.push_back(weight);
  }
  std::vector<Outcome> law;
  for_each_draw(of_columns, static_cast<std::int64_t>(s),
                [&](const auto& order, double probability, const auto& left) {
                  const auto of_draws = des_raj_factors(of_columns, order, left);
                  Weights factors;
                  for (std::size_t j = 0; j < s; ++j) factors[columns[order[j]]] = of_draws[j];
                  const auto known = std::ranges::find_if(
                      law, [&](const Outcome& outcome) { return alike(outcome.factors, factors, 1e-5); });
                  if (known == law.end()) {
                    law.push_back({factors, probability});
                    return;
                  }
                  known->probability += probability;
                  for (auto& [u, factor] : known->factors)
                    factor += (factors[u] - factor) * probability / known->probability;
                });
  return law;
}

/// Mode debiased, one layer of s picks out of columns of these weights, each with an entry in a
/// seed's row. Exact: the enumerated law has mean factor 1 for every column, so the estimate is
/// unbiased, and no batch is outside of it. 40000 batches: every outcome, the order of draws told
/// by the factors, comes as often as the law says (expect_law).
inline void expect_enumerated_law(const char* kind, const SparseMatrix& m, const Weights& weights,
                                  const Ids& seeds, std::size_t s, std::uint64_t seed) {
  const auto law = law_of(weights, s);
  std::vector<double> probabilities;
  Weights expectation;
  for (const auto& outcome : law) {
    probabilities.push_back(outcome.probability);
    for (const auto& [u, factor] : outcome.factors) expectation[u] += outcome.probability * factor;
  }
  for (const auto& [u, weight] : weights) EXPECT_NEAR(expectation[u], 1, 1e-12) << "column " << u;

  const auto sampler = make_sampler(kind, m, {.fanout = {static_cast<std::int64_t>(s)}});
  std::vector<std::int64_t> counts(law.size(), 0);
  std::int64_t strangers = 0;
  sample_batches(*sampler, seeds, 40000, seed, [&](const Minibatch& minibatch) {
    const auto factors = factors_of(m, seeds, minibatch);
    const auto found = std::ranges::find_if(
        law, [&](const Outcome& outcome) { return alike(outcome.factors, factors, 1e-6); });
    if (found == law.end())
      ++strangers;
    else
      ++counts[static_cast<std::size_t>(found - law.begin())];
  });
  EXPECT_EQ(strangers, 0) << "batches that are no outcome";
  expect_law(probabilities, counts);
}

// ---- Unbiasedness -------------------------------------------------------------------------------

using Dense = std::vector<std::array<double, 2>>;  ///< vertices x 2

/// M h.
inline Dense multiply(const SparseMatrix& m, const Dense& h) {
  Dense out(h.size());
  for (std::int64_t v = 0; v < m.rows(); ++v)
    for (const auto& [u, value] : row_of(m, v))
      for (std::size_t k = 0; k < 2; ++k)
        out[static_cast<std::size_t>(v)][k] += value * h[static_cast<std::size_t>(u)][k];
  return out;
}

/// B[L] ... B[1] h of the sampled vertices.
inline Dense multiply(const Minibatch& minibatch, const Dense& h) {
  Dense x;
  for (const auto v : minibatch.vertices) x.push_back(h[static_cast<std::size_t>(v)]);
  for (const auto& block : minibatch.blocks) {
    Dense y(static_cast<std::size_t>(block.rows));
    for (std::int64_t r = 0; r < block.rows; ++r)
      for (auto e = block.row_begin(r); e < block.row_end(r); ++e)
        for (std::size_t k = 0; k < 2; ++k)
          y[static_cast<std::size_t>(r)][k] +=
              block.values[e] * x[static_cast<std::size_t>(block.indices[e])][k];
    x = std::move(y);
  }
  return x;
}

/// One component of a product of a seed: the mean over batches, its standard error, and the full
/// product's.
struct Estimate {
  double mean, error, exact;
};

/// E[B[L] ... B[1] H] = M ... M H with L = shape.fanout.size(), for two random features H: the mean
/// of 20000 batches lies within 5 standard errors (false alarm once in 1.7 10^6 per seed and
/// feature), and some component varies. Draws from `m`; `estimated` is the matrix M that blocks
/// stand for. Returns what it compared, [seeds x 2].
inline std::vector<Estimate> expect_unbiased(const char* kind, const SparseMatrix& m,
                                             const SparseMatrix& estimated, const SamplerShape& shape,
                                             const Ids& seeds, std::uint64_t seed) {
  constexpr std::int64_t kBatches = 20000;
  Dense h(static_cast<std::size_t>(m.rows()));
  for (std::size_t v = 0; v < h.size(); ++v)
    for (std::size_t k = 0; k < 2; ++k)
      h[v][k] = 2 * to_unit_double(random64({.seed = 9, .row = v}, k)) - 0.5;
  auto exact = h;
  for (std::size_t l = 0; l < shape.fanout.size(); ++l) exact = multiply(estimated, exact);

  Dense sum(seeds.size()), squares(seeds.size());
  const auto sampler = make_sampler(kind, m, shape);
  sample_batches(*sampler, seeds, kBatches, seed, [&](const Minibatch& minibatch) {
    const auto x = multiply(minibatch, h);
    ASSERT_EQ(x.size(), seeds.size());
    for (std::size_t r = 0; r < x.size(); ++r)
      for (std::size_t k = 0; k < 2; ++k) {
        sum[r][k] += x[r][k];
        squares[r][k] += x[r][k] * x[r][k];
      }
  });

  std::vector<Estimate> estimates;
  double spread = 0;
  for (std::size_t r = 0; r < seeds.size(); ++r)
    for (std::size_t k = 0; k < 2; ++k) {
      const double mean = sum[r][k] / kBatches, full = exact[static_cast<std::size_t>(seeds[r])][k];
      const double error = std::sqrt(std::max(squares[r][k] / kBatches - mean * mean, 0.0) / kBatches);
      EXPECT_NEAR(mean, full, 5 * error + 1e-6)
          << "seed " << seeds[r] << ", " << shape.fanout.size() << " layers";
      estimates.push_back({mean, error, full});
      spread += error;
    }
  EXPECT_GT(spread, 0) << "nothing was drawn";
  return estimates;
}

}  // namespace espalier
