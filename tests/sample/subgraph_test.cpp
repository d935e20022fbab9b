// ranks: 1
// Laws of subgraphs: a batch's blocks hold the entries of M between its vertices, all of them and
// no other, times (n - 1) / (b - 1), those of the diagonal as they are; they are one block, in
// every layer. That M is their mean stands in plan/model_matrix_test.
#include <gtest/gtest.h>

#include "mpi_test.hpp"
#include "sample/sampling_laws.hpp"

namespace espalier {
namespace {

void expect_induced(const SparseMatrix& m, const Ids& seeds) {
  const auto minibatch = sample_one("subgraph", m, {.fanout = {9, 9, 9}}, seeds);
  EXPECT_TRUE(std::ranges::equal(minibatch.vertices, seeds));
  const std::set members(seeds.begin(), seeds.end());
  const auto factor = static_cast<double>(m.rows() - 1) / static_cast<double>(std::ssize(seeds) - 1);
  ASSERT_EQ(minibatch.blocks.size(), 3u);
  for (const auto& block : minibatch.blocks) {
    ASSERT_EQ(block.rows, std::ssize(seeds));
    EXPECT_EQ(block.columns, std::ssize(seeds));
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const auto v = seeds[static_cast<std::size_t>(r)];
      Row expected;
      for (const auto& [u, value] : row_of(m, v))
        if (members.contains(u)) expected[u] = u == v ? value : static_cast<float>(value * factor);
      EXPECT_EQ(row_of(minibatch, block, r), expected) << "of vertex " << v;
    }
  }
}

TEST(Subgraph, HoldsTheEdgesBetweenItsVertices) {
  const Grid grid(test_world(), 1);
  const auto m = normalize_with_self_loops(random_matrix(grid, 60, 9, true));
  expect_induced(m, {3, 59, 0, 17, 20, 21, 8, 44, 45, 46});
  expect_induced(m, {5, 4});
  Ids all(60);
  std::iota(all.rbegin(), all.rend(), std::int64_t{0});
  expect_induced(m, all);
}

TEST(Subgraph, OfOneVertexIsItsLoop) {
  const Grid grid(test_world(), 1);
  const auto m = normalize_with_self_loops(random_matrix(grid, 60, 9, false));
  const auto minibatch = sample_one("subgraph", m, {.fanout = {9}}, {12});
  EXPECT_EQ(row_of(minibatch, minibatch.blocks[0], 0), (Row{{12, row_of(m, 12).at(12)}}));
}

}  // namespace
}  // namespace espalier
