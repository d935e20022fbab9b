// ranks: 1 2 3 4
// Law: the components of a graph are those of union and find over all its edges, on any number of
// ranks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "espalier/graph/rewrite_graph.hpp"
#include "graph/whole_graph.hpp"
#include "random_graph.hpp"

namespace espalier {
namespace {

// Sparse enough that there are many components; edges in one direction alone.
Csr<std::int32_t> sparse_graph(std::int64_t n, std::uint64_t edges, std::uint64_t seed) {
  SortedEntries entries;
  for (std::uint64_t e = 0; e < edges; ++e) {
    const RandomStream stream = {.seed = seed, .row = e};
    const auto end = [&](std::uint64_t which) {
      return static_cast<std::int64_t>(random_below(stream, which, static_cast<std::uint64_t>(n)));
    };
    entries[{end(0), end(1)}] = 1;
  }
  return matrix_of<std::int32_t>(entries, n, n, false);
}

// A path through all vertices, their numbers scattered.
Csr<std::int32_t> scattered_path(std::int64_t n) {
  Csr<std::int32_t> a;
  a.rows = a.columns = n;
  for (std::int64_t v = 0; v < n; ++v) {
    if (v != n - 1) a.indices.push_back(static_cast<std::int32_t>((v * 7 + 7) % n * 13 % n));
    a.indptr.push_back(a.entries());
  }
  return a;
}

// The least vertex of each one's component, by union and find.
Buffer<std::int64_t> by_union(const Csr<std::int32_t>& a) {
  Buffer<std::int64_t> parent(a.rows);
  std::iota(parent.begin(), parent.end(), std::int64_t{0});
  const auto root = [&](std::int64_t v) {
    while (parent[v] != v) v = parent[v];
    return v;
  };
  for (std::int64_t v = 0; v < a.rows; ++v)
    for (const auto u : a.row_indices(v)) {
      const auto x = root(v), y = root(u);
      parent[std::max(x, y)] = std::min(x, y);
    }
  Buffer<std::int64_t> found;
  for (std::int64_t v = 0; v < a.rows; ++v) found.push_back(root(v));
  return found;
}

// Of all vertices, on every rank.
Buffer<std::int64_t> found_by_us(const Csr<std::int32_t>& a) {
  const auto mine = even_range(a.rows, test_world().size(), test_world().rank());
  const auto found = connected_components(test_world(), rows_of(a, mine.begin, mine.end));
  return test_world().all_gather_v(std::span<const std::int64_t>(found), "check");
}

std::vector<Csr<std::int32_t>> graphs() {
  std::vector<Csr<std::int32_t>> all = {scattered_path(331),
                                        random_graph<std::int32_t>(61, 3, false, test_seed(3))};
  for (const std::uint64_t edges : {0, 1, 40, 83, 140})
    all.push_back(sparse_graph(97, edges, test_seed(4) + edges));
  all.push_back(sparse_graph(1, 1, 1));
  return all;
}

TEST(Components, AreThoseOfUnionAndFind) {
  SCOPED_TRACE(fmt::format("seeds {} {}", test_seed(3), test_seed(4)));
  for (const auto& a : graphs()) EXPECT_EQ(found_by_us(a), by_union(a)) << a.rows << " " << a.entries();
}

}  // namespace
}  // namespace espalier
