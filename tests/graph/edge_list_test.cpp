// Law: the rows built from an edge list are those of the sparse matrix that adds 1 (or the weight) at
// (target, source) per edge; the oracle is a std::map.
#include "espalier/graph/edge_list.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "mpi_test.hpp"

namespace espalier {
namespace {

template <class Index>
EdgeList<Index> list(std::initializer_list<std::pair<int, int>> edges,
                     std::initializer_list<float> weights = {}) {
  EdgeList<Index> out;
  for (const auto& [u, v] : edges) {
    out.sources.push_back(u);
    out.targets.push_back(v);
  }
  out.weights.assign(weights.begin(), weights.end());
  return out;
}

TEST(EdgeList, AHandCheckedGraph) {
  auto edges = list<std::int32_t>({{2, 0}, {1, 0}, {2, 0}, {1, 1}, {0, 2}}, {1, 2, 4, 8, 16});
  EdgeCounts counts;
  const auto a = build_rows(edges, {0, 4}, 4, {}, counts);
  EXPECT_EQ(a.indptr, Buffer<std::int64_t>({0, 2, 3, 4, 4}));
  EXPECT_EQ(a.indices, Buffer<std::int32_t>({1, 2, 1, 0}));
  EXPECT_EQ(a.values, Buffer<float>({2, 5, 8, 16})) << "duplicates add up";
  EXPECT_EQ(counts.given, 5);
  EXPECT_EQ(counts.merged, 1);
  EXPECT_FALSE(is_symmetric(a));
  EXPECT_TRUE(edges.sources.empty());
}

TEST(EdgeList, SymmetrizedIsSymmetric) {
  auto edges = list<std::int64_t>({{0, 1}, {1, 2}, {2, 1}, {3, 3}});
  EdgeCounts counts;
  const auto a = build_rows(edges, {0, 4}, 4, {true, true}, counts);
  EXPECT_EQ(a.indices, Buffer<std::int64_t>({1, 0, 2, 1}));
  EXPECT_TRUE(is_symmetric(a));
  EXPECT_EQ(counts.loops_dropped, 1);
  EXPECT_EQ(counts.reversed, 3);
  EXPECT_EQ(counts.merged, 2);
}

TEST(EdgeList, NoEdgesAtAll) {
  EdgeList<std::int32_t> edges;
  EdgeCounts counts;
  const auto a = build_rows(edges, {5, 8}, 10, {}, counts);
  EXPECT_EQ(a.indptr, Buffer<std::int64_t>({0, 0, 0, 0}));
  EXPECT_EQ(a.entries(), 0);
}

TEST(EdgeList, RandomListsEqualAMapOfEntries) {
  const auto seed = test_seed(23);
  SCOPED_TRACE(fmt::format("ESPALIER_TEST_SEED={}", seed));
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 200; ++trial) {
    const auto n = static_cast<std::int64_t>(1 + random() % 30);
    const bool weighted = random() % 2, symmetrize = random() % 2, drop = random() % 2;
    EdgeList<std::int32_t> edges;
    std::map<std::pair<std::int64_t, std::int64_t>, float> wanted;  // (row, column)
    for (auto e = random() % 200; e > 0; --e) {
      const auto u = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n));
      const auto v = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n));
      const auto w = static_cast<float>(random() % 64);
      edges.sources.push_back(u);
      edges.targets.push_back(v);
      if (weighted) edges.weights.push_back(w);
      if (drop && u == v) continue;
      wanted[{v, u}] += w;
      if (symmetrize) wanted[{u, v}] += w;
    }
    EdgeCounts counts;
    const auto a = build_rows(edges, {0, n}, n, {symmetrize, drop}, counts);
    EXPECT_EQ(a.entries(), static_cast<std::int64_t>(wanted.size()));
    EXPECT_EQ(counts.given + counts.reversed - counts.loops_dropped - counts.merged, a.entries());
    auto next = wanted.begin();
    bool symmetric = true;
    for (std::int64_t v = 0; v < n; ++v)
      for (auto e = a.row_begin(v); e < a.row_end(v); ++e, ++next) {
        const auto u = a.indices[static_cast<std::size_t>(e)];
        EXPECT_EQ(next->first, std::make_pair(v, std::int64_t{u}));
        if (a.has_values()) EXPECT_EQ(a.values[static_cast<std::size_t>(e)], next->second);
        symmetric = symmetric && wanted.count({u, v}) > 0;
      }
    EXPECT_EQ(is_symmetric(a), symmetric);
  }
}

}  // namespace
}  // namespace espalier
