// ranks: 1 2 3 4 6
// long ranks: 8
// Laws of a cache of history over a grid: hits, rows and contents are those of one cache that all
// batches used, on every grid; each row is held once; what moves is what the model expects.
#include "espalier/history/grid_history.hpp"

#include "history/grid_history_cases.hpp"

namespace espalier {
namespace {

TEST(GridHistory, IsOneCacheOfAllBatches) {
  const auto seed = test_seed(41);
  for (const int c : std::set{1, test_world().size()})
    for (const auto& shape : grid_history_shapes()) {
      SCOPED_TRACE(fmt::format("seed {} c {} {}", seed, c, name_of(shape)));
      const Grid grid(test_world(), c);
      expect_grid_as_a_map(Cpu{1}, grid, shape, 80, 9, seed);
    }
}

// Every rank has batches of the same thousands of vertices: so every pair exchanges something, and
// a hash spreads keys to a few hundredths. Of each vertex one rank has the lowest batch, and only
// its row travels.
TEST(GridHistory, PredictsWhatItMoves) {
  constexpr std::int64_t kVertices = 6000, kWidth = 5;
  const Grid grid(test_world(), 1);
  const int p = test_world().size(), me = test_world().rank();
  grid.traffic().clear();
  GridHistory cache(grid, {.layers = 1, .width = kWidth, .t_stale = 9});
  HistoryLists lists = {{}, {kVertices, 0}};
  std::vector<HistoryWrite> writes;
  std::vector<std::vector<HistoryWrite>> of_batch(static_cast<std::size_t>(p));
  Matrix<float> rows(kVertices, kWidth), first_rows(kVertices, kWidth);
  std::ranges::fill(first_rows.data, -1.0f);
  for (std::int64_t v = 0; v < kVertices; ++v) {
    lists.vertices.push_back(v);
    writes.push_back({v, 0, v});
    of_batch[(v + me) % p].push_back(writes.back());
    std::fill_n(rows.row(v), kWidth, static_cast<float>(v + 10000 * me));
  }
  cache.begin({}, 0);
  cache.write({}, 0, 2 * p + me, 1, writes, first_rows);  // stays where it is
  for (int batch = 0; batch < p; ++batch) cache.write({}, 0, batch, 1, of_batch[batch], rows);
  cache.end({}, 0, "end");
  cache.begin({}, 2);
  std::vector<HistoryFoundOn<Cpu>> found;
  const std::vector<Minibatch> minibatches = {minibatch_of<Cpu>(lists, lists.vertices)};
  cache.find({}, minibatches, found, "find");
  EXPECT_EQ(std::ranges::count(found[0].hits[0], 1), kVertices);
  Matrix<float> read;
  const std::vector<HistoryReadOn<Cpu>> reads = {{1, lists.vertices, &read}, {1, lists.vertices, &read}};
  cache.read({}, reads, "read");
  for (std::int64_t v = 0; v < kVertices; ++v)
    EXPECT_EQ(read(v, 0), static_cast<float>(v + 10000 * ((p - v % p) % p))) << "the lowest batch's row";
  cache.evict(2, 1, lists.vertices);
  cache.end({}, 2, "evict");
  const double n = kVertices;
  const std::vector<std::pair<std::string, Cost>> steps = {
      {"find", history_request_cost(p, n, 1)},
      {"read", history_request_cost(p, n, 4 * kWidth)},
      {"end", history_write_cost(p, n, n / p, 0, 4 * kWidth)},
      {"evict", history_write_cost(p, 0, 0, n, 4 * kWidth)}};
  for (const auto& [label, cost] : steps) {
    SCOPED_TRACE(label);
    const auto volume = grid.traffic().of(label);
    EXPECT_DOUBLE_EQ(volume.predicted_bytes, cost.bytes);
    const auto sum = [&](double x) { return test_world().all_reduce(x, Reduction::kSum, "test"); };
    EXPECT_NEAR(sum(static_cast<double>(volume.bytes_received)), sum(cost.bytes), 0.02 * sum(cost.bytes));
    EXPECT_NEAR(static_cast<double>(volume.bytes_received), cost.bytes, 0.1 * cost.bytes);
    EXPECT_EQ(static_cast<double>(volume.rounds), p > 1 ? cost.rounds : 0);
    // Nothing to evict, or to write: those pairs exchange nothing.
    const double empty = label == "end" ? p - 1 : label == "evict" ? 3 * (p - 1) : 0;
    EXPECT_EQ(static_cast<double>(volume.messages), cost.messages - empty);
  }
}

TEST(GridHistory, ShardsAreOfOneRankEach) {
  const Grid grid(test_world(), 1);
  const GridHistory cache(grid, {.layers = 1, .width = 1});
  std::vector<int> rank_of_shard(kHistoryShards, -1);
  for (std::int64_t v = 0; v < 20000; ++v) {
    auto& rank = rank_of_shard[history_shard(v)];
    EXPECT_TRUE(rank == -1 || rank == cache.rank_of(v));
    rank = cache.rank_of(v);
  }
  for (int rank = 0; rank < test_world().size(); ++rank)
    EXPECT_NEAR(static_cast<double>(std::ranges::count(rank_of_shard, rank)),
                static_cast<double>(kHistoryShards) / test_world().size(), 1);
}

}  // namespace
}  // namespace espalier
