// ranks: 1 4 9
// Laws: the components of a graph are those of union and find over all its edges, on any number of
// ranks; and those that CombBLAS finds by SpMV, which brings each vertex the largest number of its
// neighbours until none changes. What rewrite_graph() symmetrises has the pattern of CombBLAS' A +
// A^T. CombBLAS wants a square number of ranks and says a lot on stdout.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "espalier/graph/rewrite_graph.hpp"
#include "graph/whole_graph.hpp"
#include "random_graph.hpp"

#ifdef ESPALIER_WITH_COMBBLAS
// Last: CombBLAS leaves macros behind (Max, Assert) that GoogleTest cannot read.
#include "combblas_matrix.hpp"
#endif

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
Csr<std::int32_t> path(std::int64_t n) {
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
  std::vector<Csr<std::int32_t>> all = {path(331), random_graph<std::int32_t>(61, 3, false, test_seed(3))};
  for (const std::uint64_t edges : {0, 1, 40, 83, 140})
    all.push_back(sparse_graph(97, edges, test_seed(4) + edges));
  all.push_back(sparse_graph(1, 1, 1));
  return all;
}

TEST(Components, AreThoseOfUnionAndFind) {
  SCOPED_TRACE(fmt::format("seeds {} {}", test_seed(3), test_seed(4)));
  for (const auto& a : graphs()) EXPECT_EQ(found_by_us(a), by_union(a)) << a.rows << " " << a.entries();
}

#ifndef ESPALIER_WITH_COMBBLAS
TEST(AgainstCombBlas, ComponentsAndReverses) {
  GTEST_SKIP() << "built without CombBLAS (libcombblas-dev)";
}
#else

EntryMap entries_of(const Csr<std::int32_t>& a) {
  EntryMap entries;
  for (std::int64_t v = 0; v < a.rows; ++v)
    for (const auto u : a.row_indices(v)) entries[{v, u}] = 1;
  return entries;
}

// A + A^T, with what else is given.
SquareGridMatrix symmetrised(const Csr<std::int32_t>& a, const EntryMap& entries) {
  const auto grid = std::make_shared<combblas::CommGrid>(test_world().native(), 0, 0);
  auto matrix = to_combblas(grid, a.rows, a.rows, entries);
  auto reversed = matrix;
  reversed.Transpose();
  matrix += reversed;
  matrix.Apply([](std::int64_t) { return std::int64_t{1}; });
  return matrix;
}

// Vertex v is n - v, so that the largest number is the least vertex.
Buffer<std::int64_t> found_by_combblas(const Csr<std::int32_t>& a) {
  auto entries = entries_of(a);
  for (std::int64_t v = 0; v < a.rows; ++v) entries[{v, v}] = 1;
  const auto matrix = symmetrised(a, entries);
  combblas::FullyDistVec<std::int64_t, std::int64_t> numbers(matrix.getcommgrid(), a.rows, 0);
  for (std::int64_t v = 0; v < a.rows; ++v) numbers.SetElement(v, a.rows - v);
  for (bool changed = true; changed;) {
    auto next = combblas::SpMV<combblas::SelectMaxSRing<std::int64_t, std::int64_t>>(matrix, numbers);
    changed = !(next == numbers);
    numbers = next;
  }
  auto all = test_world().all_gather_v(
      std::span<const std::int64_t>(numbers.GetLocArr(), static_cast<std::size_t>(numbers.LocArrSize())),
      "check");
  for (auto& number : all) number = a.rows - number;
  return all;
}

TEST(AgainstCombBlas, Components) {
  SCOPED_TRACE(fmt::format("seed {}", test_seed(5)));
  const auto a = sparse_graph(97, 83, test_seed(5));
  EXPECT_EQ(found_by_us(a), found_by_combblas(a));
}

TEST(AgainstCombBlas, Reverses) {
  SCOPED_TRACE(fmt::format("seed {}", test_seed(6)));
  const auto a = sparse_graph(97, 400, test_seed(6));
  const auto folder = test_folder("reverses");
  const auto mine = even_range(a.rows, test_world().size(), test_world().rank());
  {
    GraphWriter writer(test_world(), Destination(folder + "/graph.h5"));
    writer.write_adjacency(rows_of(a, mine.begin, mine.end));
    writer.commit({"random", "a test", true});
  }
  const auto view = view_of(true);
  {
    const GraphFile file(test_world(), folder + "/graph.h5", view);
    rewrite_graph(test_world(), file, {.clean = CleanOptions{.symmetrise = true}},
                  Destination(folder + "/symmetrised.h5"));
  }
  const GraphFile file(test_world(), folder + "/symmetrised.h5", view);
  auto wanted = symmetrised(a, entries_of(a));
  EXPECT_TRUE(entries_of(file.read_rows<std::int32_t>(0, test_world().rank() == 0 ? a.rows : 0)) ==
              (test_world().rank() == 0 ? from_combblas(wanted) : (from_combblas(wanted), EntryMap())));
  EXPECT_FALSE(file.info().directed.value());
}

#endif

}  // namespace
}  // namespace espalier
