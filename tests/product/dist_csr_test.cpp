// ranks: 1 2 3 4 6
// long ranks: 8
// Laws of the matrices that models multiply by: equal to the dense formula, bit for bit, on
// every grid.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "distribute_cut.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/product/dist_csr.hpp"
#include "mpi_test.hpp"
#include "partition/cut.hpp"
#include "partition/owned.hpp"
#include "random_graph.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kDenseRows = 29;

// A, or A + I, as a dense matrix, and which of its entries are stored.
struct Dense {
  Matrix<double> a = Matrix<double>(kDenseRows, kDenseRows);
  Matrix<std::uint8_t> stored = Matrix<std::uint8_t>(kDenseRows, kDenseRows);
  std::vector<double> sums = std::vector<double>(kDenseRows, 0.0);  // of rows

  Dense(const Csr<std::int32_t>& whole, bool self_loops, bool weighted) {
    std::ranges::fill(a.data, 0.0);
    std::ranges::fill(stored.data, 0);
    for (std::int64_t v = 0; v < kDenseRows; ++v) {
      for (auto k = whole.row_begin(v); k < whole.row_end(v); ++k) {
        a(v, whole.indices[k]) = weighted && whole.has_values() ? whole.values[k] : 1.0;
        stored(v, whole.indices[k]) = 1;
      }
      if (self_loops) a(v, v) += 1, stored(v, v) = 1;
      for (std::int64_t u = 0; u < kDenseRows; ++u) sums[v] += a(v, u);
    }
  }
};

// The rows of this rank are value(v, u) where the dense matrix has an entry, to the last bit.
void expect_rows(const DistCsr<std::int32_t>& m, const Dense& dense, const auto& value) {
  EXPECT_TRUE(m.has_values);
  std::int64_t entries = m.local.entries();
  if (m.parts() > 1) entries = m.grid->column_comm().all_reduce(entries, Reduction::kSum, "test");
  EXPECT_EQ(entries, std::accumulate(dense.stored.data.begin(), dense.stored.data.end(), std::int64_t{0}));
  const auto counted = count_rows(m, WholeRowFacts::kPlaces);
  for (std::int64_t k = 0; k < m.ownership.size(m.part); ++k) {
    const auto* stored = dense.stored.row(m.ownership.vertex(m.part, k));
    EXPECT_EQ(counted.row_size(k), std::accumulate(stored, stored + kDenseRows, std::int64_t{0}));
  }
  m.for_each_row([&](std::int64_t row, std::int64_t v) {
    for (auto k = m.local.row_begin(row); k < m.local.row_end(row); ++k) {
      const std::int64_t u = m.local.indices[k];
      EXPECT_TRUE(dense.stored(v, u));
      EXPECT_EQ(m.local.values[k], static_cast<float>(value(v, u)));
    }
  });
}

/// The matrix as block rows, and in every cut.
template <class Use>
void for_each_cut(const Grid& grid, const Csr<std::int32_t>& whole, const Ownership& ownership, Use use) {
  use(distribute(grid, whole, ownership));
  for (const auto cut : kAllCuts)
    use(distribute_cut<std::int32_t>(grid, whole, ownership, parts_of_entries(cut, whole, grid.rows())));
}

// D^-1/2 (A + I) D^-1/2
TEST(NormalizeWithSelfLoops, EqualsTheDenseFormulaOnEveryGrid) {
  for (const bool weighted : {false, true}) {
    const auto whole = random_graph<std::int32_t>(kDenseRows, 4, weighted, 9);
    const Dense dense(whole, true, true);
    for (const int c : divisors(test_world().size()))
      for (const auto owned : kAllOwned) {
        const Grid grid(test_world(), c);
        const auto ownership = ownership_of(owned, kDenseRows, grid.rows());
        for_each_cut(grid, whole, ownership, [&](const DistCsr<std::int32_t>& a) {
          expect_rows(normalize_with_self_loops(a), dense, [&](std::int64_t v, std::int64_t u) {
            return dense.a(v, u) / std::sqrt(dense.sums[v] * dense.sums[u]);
          });
        });
      }
  }
}

// D^-1 A and D^-1 (A + I)
TEST(NormalizeRows, EqualsTheDenseFormulaOnEveryGrid) {
  for (const bool weighted_graph : {false, true})
    for (const bool self_loops : {false, true})
      for (const bool weighted : {false, true}) {
        const auto whole = random_graph<std::int32_t>(kDenseRows, 4, weighted_graph, 9);
        const Dense dense(whole, self_loops, weighted);
        for (const int c : divisors(test_world().size())) {
          const Grid grid(test_world(), c);
          for_each_cut(grid, whole, ownership_of(Owned::kAtRandom, kDenseRows, grid.rows()),
                       [&](const DistCsr<std::int32_t>& a) {
                         expect_rows(normalize_rows(a, self_loops, weighted), dense,
                                     [&](std::int64_t v, std::int64_t u) {
                                       return dense.sums[v] > 0 ? dense.a(v, u) / dense.sums[v]
                                                                : dense.a(v, u);
                                     });
                       });
        }
      }
}

}  // namespace
}  // namespace espalier
