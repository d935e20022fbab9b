// ranks: 1 2 3 4 6
// long ranks: 8
// Laws of the matrices that models multiply by: equal to the dense formula, bit for bit, on
// every grid.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "espalier/product/dist_csr.hpp"
#include "mpi_test.hpp"
#include "partition/owned.hpp"
#include "random_graph.hpp"

namespace espalier {
namespace {

// D^-1/2 (A + I) D^-1/2 by a dense loop.
TEST(NormalizeWithSelfLoops, EqualsTheDenseFormulaOnEveryGrid) {
  constexpr std::int64_t n = 29;
  for (const bool weighted : {false, true}) {
    const auto whole = random_graph<std::int32_t>(n, 4, weighted, 9);
    std::vector<double> dense(n * n, 0.0), degree(n, 0.0);
    std::vector<bool> stored(n * n, false);
    for (std::int64_t v = 0; v < n; ++v) {
      for (std::int64_t k = whole.row_begin(v); k < whole.row_end(v); ++k) {
        const auto at = static_cast<std::size_t>(v * n + whole.indices[static_cast<std::size_t>(k)]);
        dense[at] = weighted ? whole.values[static_cast<std::size_t>(k)] : 1.0;
        stored[at] = true;
      }
      dense[static_cast<std::size_t>(v * n + v)] += 1.0;
      stored[static_cast<std::size_t>(v * n + v)] = true;
      for (std::int64_t u = 0; u < n; ++u)
        degree[static_cast<std::size_t>(v)] += dense[static_cast<std::size_t>(v * n + u)];
    }
    for (const int c : divisors(test_world().size()))
      for (const auto owned : kAllOwned) {
        const Grid grid(test_world(), c);
        const auto ownership = ownership_of(owned, n, grid.rows());
        const auto a = normalize_with_self_loops(distribute(grid, whole, ownership));
        for (std::int64_t row = 0; row < a.local.rows; ++row) {
          const auto v = a.ownership.vertex(a.part, row);
          std::int64_t entries = 0;
          for (std::int64_t u = 0; u < n; ++u) entries += stored[static_cast<std::size_t>(v * n + u)];
          EXPECT_EQ(a.local.row_size(row), entries);
          for (std::int64_t k = a.local.row_begin(row); k < a.local.row_end(row); ++k) {
            const std::int64_t u = a.local.indices[static_cast<std::size_t>(k)];
            const double expected =
                dense[static_cast<std::size_t>(v * n + u)] /
                std::sqrt(degree[static_cast<std::size_t>(v)] * degree[static_cast<std::size_t>(u)]);
            EXPECT_EQ(a.local.values[static_cast<std::size_t>(k)], static_cast<float>(expected));
          }
        }
      }
  }
}

// D^-1 A and D^-1 (A + I) by a loop over a dense row.
TEST(NormalizeRows, EqualsTheDenseFormulaOnEveryGrid) {
  constexpr std::int64_t n = 29;
  for (const bool weighted_graph : {false, true})
    for (const bool self_loops : {false, true})
      for (const bool weighted : {false, true}) {
        const auto whole = random_graph<std::int32_t>(n, 4, weighted_graph, 9);
        for (const int c : divisors(test_world().size())) {
          const Grid grid(test_world(), c);
          const auto a = distribute(grid, whole, ownership_of(Owned::kAtRandom, n, grid.rows()));
          const auto m = normalize_rows(a, self_loops, weighted);
          EXPECT_TRUE(m.has_values);
          for (std::int64_t row = 0; row < m.local.rows; ++row) {
            const auto v = m.ownership.vertex(m.part, row);
            std::vector<double> dense(n, 0.0);
            std::vector<bool> stored(n, false);
            for (auto k = whole.row_begin(v); k < whole.row_end(v); ++k) {
              const auto at = static_cast<std::size_t>(whole.indices[static_cast<std::size_t>(k)]);
              dense[at] = weighted && weighted_graph ? whole.values[static_cast<std::size_t>(k)] : 1.0;
              stored[at] = true;
            }
            if (self_loops) {
              dense[static_cast<std::size_t>(v)] += 1.0;
              stored[static_cast<std::size_t>(v)] = true;
            }
            double sum = 0;
            for (const double x : dense) sum += x;
            EXPECT_EQ(m.local.row_size(row), std::count(stored.begin(), stored.end(), true));
            for (auto k = m.local.row_begin(row); k < m.local.row_end(row); ++k) {
              const auto u = static_cast<std::size_t>(m.local.indices[static_cast<std::size_t>(k)]);
              EXPECT_TRUE(stored[u]);
              EXPECT_EQ(m.local.values[static_cast<std::size_t>(k)],
                        static_cast<float>(sum > 0 ? dense[u] / sum : dense[u]));
            }
          }
        }
      }
}

}  // namespace
}  // namespace espalier
