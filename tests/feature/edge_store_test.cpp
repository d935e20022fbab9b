// ranks: 1 2 3 4 6
// Law: whoever owns the rows of a matrix, and whatever entries a minibatch has, its blocks point to
// the features of those whose relations have some, as they stand in the file; to zeros where an
// entry is not in the matrix. What a fetch moves is what the model expects.
#include "edge_store_cases.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "mpi_test.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

GraphView apart() {
  GraphView view;
  view.apart = true;
  return view;
}

void expect_edges(const Minibatch& minibatch, const EdgeMinibatch& of) {
  for (std::size_t l = 0; l < minibatch.blocks.size(); ++l) {
    const auto& edges = minibatch.blocks[l].edges;
    ASSERT_EQ(edges.count, std::ssize(of.entries[l]));
    ASSERT_EQ(edges.width, kEdgeWidth);
    EXPECT_TRUE(std::equal(of.entries[l].begin(), of.entries[l].end(), edges.entries));
    EXPECT_EQ(std::memcmp(edges.rows, of.rows[l].data(), of.rows[l].size() * sizeof(float)), 0);
  }
}

template <class T>
void expect_fetches(const std::string& path) {
  const auto& world = test_world();
  write_edges<T>(path, world);
  const GraphFile file(world, path, apart());
  const auto a = edge_matrix();
  for (const int c : divisors(world.size()))
    for (const auto owned : kAllOwned) {
      SCOPED_TRACE("c " + std::to_string(c) + " owned " + std::to_string(static_cast<int>(owned)));
      const Grid grid(world, c);
      const auto ownership = ownership_of(owned, kEdgeVertices, grid.rows());
      const auto store = read_edges(grid, file, ownership);
      EXPECT_EQ(store.width(), kEdgeWidth);
      EdgesOn<Cpu> edges;
      PendingEdgesOn<Cpu> pending;
      for (std::uint64_t round = 0; round < 2; ++round) {
        std::vector<EdgeMinibatch> of;
        for (std::uint64_t m = 0; m < static_cast<std::uint64_t>(world.rank() % 3); ++m)
          of.emplace_back(a, 100 * round + 10 * static_cast<std::uint64_t>(world.rank()) + m);
        std::vector<Minibatch> minibatches;
        for (const auto& one : of) minibatches.push_back(one.minibatch());
        store.begin_counts(Cpu{2}, minibatches, pending, "fetch");
        store.advance(Cpu{2}, pending, FetchMove::kRows, "fetch");
        store.finish(Cpu{2}, pending, minibatches, edges);
        for (std::size_t m = 0; m < of.size(); ++m) expect_edges(minibatches[m], of[m]);
      }
      const auto mine = vertices_of(ownership, grid.row());
      if (mine.empty()) continue;
      const EdgeMinibatch own(a, 7, mine);
      std::vector<Minibatch> minibatches = {own.minibatch(1)};
      store.read(Cpu{1}, minibatches, edges);
      expect_edges(minibatches[0], own);
    }
}

TEST(EdgeStore, FetchesTheFeaturesOfAnyEntries) {
  const auto folder = test_folder("edge-store");
  expect_fetches<float>(folder + "/a.h5");
  expect_fetches<Half>(folder + "/b.h5");
}

// With one minibatch of all vertices on each rank owners are met evenly.
TEST(EdgeStore, MovesWhatTheModelExpects) {
  const auto& world = test_world();
  const auto path = test_folder("edge-store-bytes") + "/a.h5";
  write_edges<float>(path, world);
  const GraphFile file(world, path, apart());
  const auto a = edge_matrix();
  const Grid grid(world, 1);
  const auto ownership = ownership_of(Owned::kAtRandom, kEdgeVertices, grid.rows());
  const auto store = read_edges(grid, file, ownership);
  EdgesOn<Cpu> edges;
  PendingEdgesOn<Cpu> pending;
  const EdgeMinibatch of(a, static_cast<std::uint64_t>(world.rank()));
  std::vector<Minibatch> minibatches = {of.minibatch()};
  grid.traffic().clear();
  store.begin_counts(Cpu{1}, minibatches, pending, "fetch");
  store.advance(Cpu{1}, pending, FetchMove::kRows, "fetch");
  store.finish(Cpu{1}, pending, minibatches, edges);
  const auto moved = grid.traffic().of("fetch");
  // Exactly: counts, a number of 4 bytes and a row for each entry of another rank's vertex.
  std::int64_t remote = 0, all = 0;
  for (std::size_t l = 0; l < 2; ++l)
    for (const auto e : of.entries[l]) {
      const auto& indptr = of.storage[l].indptr;
      const auto row = std::upper_bound(indptr.begin(), indptr.end(), e) - indptr.begin() - 1;
      remote += ownership.owner(of.vertices[static_cast<std::size_t>(row)]) != grid.row();
      ++all;
    }
  EXPECT_EQ(pending.fetch.remote_rows(), remote);
  const auto wanted = world.all_reduce(remote, Reduction::kSum, "test"),
             received =
                 world.all_reduce(static_cast<std::int64_t>(moved.bytes_received), Reduction::kSum, "test");
  const std::int64_t ranks = world.size();
  EXPECT_EQ(received, 8 * ranks * (ranks - 1) + wanted * (4 + 4 * kEdgeWidth));
  EXPECT_NEAR(moved.predicted_bytes,
              static_cast<double>(8 * (ranks - 1)) +
                  static_cast<double>(all * (4 + 4 * kEdgeWidth)) * (1 - 1.0 / static_cast<double>(ranks)),
              1e-6 * static_cast<double>(1 + received));
}

TEST(EdgeStore, RefusesAnotherNumberOfFeaturesThanOfEntries) {
  const auto& world = test_world();
  const auto path = test_folder("edge-store-many") + "/a.h5";
  write_edges<float>(path, world, true);
  const Grid grid(world, 1);
  expect_refused(ExitCode::kInput, {"b.to.a"}, [&] {
    const GraphFile file(world, path, apart());
    read_edges(grid, file, block_partition(kEdgeVertices, grid.rows()));
  });
}

}  // namespace
}  // namespace espalier
