// ranks: 1 2 3 4 6 8
// Laws of the distributed product Q A (schedule pull): row q of the result is row Q[q] of A, bit for bit, for
// every grid, also with more ranks than rows, repeated and no requests; bytes are conserved and each distinct
// remote row travels once.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "espalier/dist/product.hpp"
#include "mpi_test.hpp"
#include "random_graph.hpp"

namespace espalier {
namespace {

std::vector<std::int64_t> requests(std::int64_t n, int rank) {
  std::vector<std::int64_t> q;
  const RandomStream stream = {.seed = 5, .row = static_cast<std::uint64_t>(rank)};
  const auto count = rank % 3 == 1 ? 0 : 40;  // some ranks ask for nothing
  for (std::uint64_t k = 0; k < static_cast<std::uint64_t>(count); ++k)
    q.push_back(static_cast<std::int64_t>(random_below(stream, k, static_cast<std::uint64_t>(n))));
  return q;
}

template <class Index>
void expect_rows(const Csr<Index>& whole, const SelectedRows<Index>& p, const std::vector<std::int64_t>& q) {
  ASSERT_EQ(p.rows.size(), q.size());
  for (std::size_t k = 0; k < q.size(); ++k) {
    const auto& row = p.rows[k];
    EXPECT_TRUE(std::ranges::equal(p.indices(static_cast<std::int64_t>(k)), whole.row_indices(q[k])));
    if (whole.has_values())
      EXPECT_TRUE(std::equal(row.values, row.values + row.size, whole.row_values(q[k]).begin()));
  }
}

TEST(Pull, EqualsTheLocalRowsForEveryShapeAndGrid) {
  for (const std::int64_t n : {3, 5, 64, 157})
    for (const bool weighted : {false, true}) {
      const auto whole = random_graph<std::int32_t>(n, 6, weighted, 3);
      const auto wide = random_graph<std::int64_t>(n, 6, weighted, 3);
      for (const int c : divisors(test_world().size()))
        for (const auto topology : {Topology::kPartitioned, Topology::kReplicated}) {
          const Grid grid(test_world(), c);
          const auto q = requests(n, test_world().rank());
          const auto a = distribute(grid, whole, topology);
          expect_rows(whole, select_rows_pull({2}, std::span<const std::int64_t>(q), a, "x"), q);
          const auto b = distribute(grid, wide, topology);
          expect_rows(wide, select_rows_pull({1}, std::span<const std::int64_t>(q), b, "x"), q);
        }
    }
}

TEST(Pull, MovesEachDistinctRemoteRowOnce) {
  const auto whole = random_graph<std::int32_t>(157, 6, true, 3);
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    const auto a = distribute(grid, whole, Topology::kPartitioned);
    const auto q = requests(157, test_world().rank());
    grid.traffic().clear();
    select_rows_pull({1}, std::span<const std::int64_t>(q), a, "pull");
    std::int64_t expected = 0;  // received: size, indices and values of every distinct remote row
    for (const auto id : std::set<std::int64_t>(q.begin(), q.end()))
      if (!a.is_local(id)) expected += 8 + whole.row_size(id) * (4 + 4);
    std::int64_t asked = 0;  // received as an owner: ids of the other ranks of my column
    for (int r = 0; r < grid.rows(); ++r) {
      if (r == grid.row()) continue;
      const auto theirs = requests(157, r * c + grid.column());
      for (const auto id : std::set<std::int64_t>(theirs.begin(), theirs.end()))
        asked += a.is_local(id) ? 8 : 0;
    }
    const auto counts = grid.rows() > 1 ? 8 * (grid.rows() - 1) : 0;
    EXPECT_EQ(grid.traffic().of("pull").bytes_received, expected + asked + counts);
    const auto sent = test_world().all_reduce(grid.traffic().of("pull").bytes_sent, Reduction::kSum, "x");
    const auto received =
        test_world().all_reduce(grid.traffic().of("pull").bytes_received, Reduction::kSum, "x");
    EXPECT_EQ(sent, received);
  }
}

TEST(Pull, ReplicatedTopologySendsNothing) {
  const Grid grid(test_world(), 1);
  const auto a = distribute(grid, random_graph<std::int32_t>(50, 4, false, 3), Topology::kReplicated);
  grid.traffic().clear();
  select_rows_pull({1}, std::span<const std::int64_t>(requests(50, test_world().rank())), a, "pull");
  EXPECT_EQ(grid.traffic().of("pull").bytes_received, 0);
}

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
      for (const auto topology : {Topology::kPartitioned, Topology::kReplicated}) {
        const Grid grid(test_world(), c);
        const auto a = normalize_with_self_loops(distribute(grid, whole, topology));
        for (std::int64_t row = 0; row < a.local.rows; ++row) {
          const auto v = a.first_row() + row;
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

}  // namespace
}  // namespace espalier
