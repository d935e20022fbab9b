// Laws of a cache of history: what hits, what is read and what is held is what a loop over a map
// makes of the steps, for every age and bound; a checkpoint in the middle changes nothing, and
// parts of it make the same whole; rows of bytes are as near as the bound says.
#include "espalier/history/history_cache.hpp"

#include <set>

#include "espalier/base/error.hpp"
#include "history/history_cases.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

TEST(HistoryCache, IsAsALoopOverAMap) {
  const auto seed = test_seed(31);
  for (const auto& shape : history_shapes()) {
    SCOPED_TRACE(fmt::format("seed {} {}", seed, name_of(shape)));
    expect_as_a_map(Cpu{1}, shape, 60, 22, seed);
  }
}

// Shards with tens of rows, and queues with many places that are no longer meant.
TEST(HistoryCache, IsAsALoopOverAMapOfManyRows) {
  for (const std::int64_t entries : {0, 1024, 2500})
    expect_as_a_map(Cpu{2}, {.layers = 2, .width = 1, .t_stale = 20, .entries = entries}, 2000, 30,
                    test_seed(32));
}

// The parts by any rule make the whole again, in whatever order their records come.
TEST(HistoryCache, PartsOfAStateMakeTheWhole) {
  const HistoryShape shape = {.layers = 2, .width = 5, .t_stale = 50, .entries = 2000};
  const auto whole = expect_as_a_map(Cpu{1}, shape, 90, 24, test_seed(33));
  for (const auto kind :
       {HistoryRecord::Kind::kHeld, HistoryRecord::Kind::kWritten, HistoryRecord::Kind::kDropped})
    ASSERT_GE(whole.count(kind), 20);
  HistoryState mixed;
  for (const int part : {2, 0, 1}) {
    const auto mine = whole.part([&](std::int64_t v) { return v % 3 == part; });
    HistoryCache cache(shape);
    cache.restore({}, 24, mine.records, mine.rows.data());
    EXPECT_EQ(state_of({}, cache, 24), mine);
    std::ranges::copy(mine.records, std::back_inserter(mixed.records));
    std::ranges::copy(mine.rows, std::back_inserter(mixed.rows));
  }
  HistoryCache cache(shape);
  cache.restore({}, 24, mixed.records, mixed.rows.data());
  EXPECT_EQ(state_of({}, cache, 24), whole);
}

TEST(HistoryCache, ACheckpointHoldsNothingThatWasDoneAhead) {
  for (const std::int64_t entries : {0, 30, 1500})
    expect_checkpoints_as_without_looking_ahead(
        Cpu{1}, {.layers = 2, .width = 2, .t_stale = 7, .entries = entries}, test_seed(35));
}

TEST(HistoryCache, BytesAreAsNearAsTheBound) {
  std::mt19937_64 random(test_seed(34));
  HistoryCache cache({.layers = 1, .width = 9, .precision = HistoryPrecision::kUint8});
  EXPECT_EQ(history_row_bytes(HistoryPrecision::kUint8, 9), 20);
  EXPECT_EQ(history_row_bytes(HistoryPrecision::kFloat16, 9), 20);
  EXPECT_EQ(history_row_bytes(HistoryPrecision::kFloat32, 9), 36);
  constexpr std::int64_t kRows = 300;
  Matrix<float> rows(kRows, 9);
  HistoryLists lists = {{}, {kRows, 0}};
  std::vector<HistoryWrite> writes;
  Buffer<std::int64_t> positions;
  for (std::int64_t k = 0; k < kRows; ++k) {
    const int magnitude = static_cast<int>(random() % 250) - 140;  // subnormal ones too
    for (std::int64_t j = 0; j < 9; ++j)
      rows(k, j) = k % 3 == 0 && j % 2 == 0
                       ? 0.0f
                       : std::ldexp(static_cast<float>(random() % 100000), magnitude - 17) *
                             (k % 5 == 0 && j > 4 ? -1.0f : 1.0f);
    lists.vertices.push_back(k);
    positions.push_back(k);
    writes.push_back({k, 0, k});
  }
  std::ranges::fill(std::span(rows.row(7), 9), 0.0f);
  rows(8, 3) = NAN;
  rows(9, 8) = -INFINITY;
  cache.begin({}, 0);
  cache.write({}, 0, 0, 1, writes, rows);
  cache.end(0);
  cache.begin({}, 2);
  const auto found = cache.find({}, minibatch_of<Cpu>(lists, lists.vertices));
  Matrix<float> read;
  cache.read({}, found, 1, positions, read);
  for (std::int64_t k = 0; k < kRows; ++k) {
    for (std::int64_t j = 0; j < 9; ++j)
      if (k == 8 || k == 9) EXPECT_TRUE(std::isnan(read(k, j)));
    if (k == 8 || k == 9) continue;
    SCOPED_TRACE(k);
    expect_kept(HistoryPrecision::kUint8, {rows.row(k), rows.row(k) + 9}, read.row(k));
    for (std::int64_t j = 0; j < 9; ++j)
      if (k % 5 != 0 && rows(k, j) == 0) EXPECT_EQ(read(k, j), 0.0f) << "what ReLU made 0 stays so";
  }
}

TEST(HistoryCache, WordsOfTheConfig) {
  EXPECT_EQ(history_precision_of("fp32"), HistoryPrecision::kFloat32);
  EXPECT_EQ(history_precision_of("fp16"), HistoryPrecision::kFloat16);
  EXPECT_EQ(history_precision_of("uint8"), HistoryPrecision::kUint8);
  EXPECT_THROW(history_precision_of("int8"), UserError);
}

// Of the rows that could hit a share does not, by independent draws of steps, batches and layers.
TEST(HistoryCache, AShareOfHitsIsComputedAnyway) {
  constexpr std::int64_t kRows = 4000;
  HistoryShape shape = {.layers = 2, .width = 2, .t_stale = 9};
  shape.recompute = std::uint64_t{3} << 30;  // 3 of 4
  shape.seed = test_seed(33);
  HistoryCache cache(shape);
  HistoryLists lists = {{}, {kRows, kRows, 1}};
  Matrix<float> rows(kRows, 2);
  std::vector<HistoryWrite> writes;
  for (std::int64_t v = 0; v < kRows; ++v) {
    lists.vertices.push_back(v);
    if (v % 5 != 0) writes.push_back({v, 0, v});
  }
  cache.begin({}, 0);
  for (const int layer : {1, 2}) cache.write({}, 0, 0, layer, writes, rows);
  cache.end(0);
  std::set<std::vector<std::uint8_t>> all;
  for (const std::int64_t step : {2, 3}) {
    cache.begin({}, step);
    for (const std::int64_t batch : {3, 4}) {
      auto minibatch = minibatch_of<Cpu>(lists, lists.vertices);
      minibatch.number = batch;
      const auto found = cache.find({}, minibatch);
      for (const int l : {0, 1}) {
        std::int64_t drawn = 0;
        for (std::int64_t v = 0; v < kRows; ++v) {
          ASSERT_EQ(found.hits[l][v] + found.recomputed[l][v], v % 5 != 0) << v;
          drawn += found.recomputed[l][v];
        }
        EXPECT_NEAR(static_cast<double>(drawn), 0.75 * static_cast<double>(writes.size()),
                    130);  // 5 deviations
        all.emplace(found.recomputed[l].begin(), found.recomputed[l].end());
      }
    }
    cache.end(step);
  }
  EXPECT_EQ(all.size(), 8u);
}

}  // namespace
}  // namespace espalier
