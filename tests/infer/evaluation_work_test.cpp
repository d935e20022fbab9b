// What evaluation fetches: counted by hand on a tiny graph, and an estimate that agrees with the
// count on a random one.
#include "espalier/infer/evaluation_work.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "espalier/base/philox.hpp"
#include "mpi_test.hpp"
#include "partition/owned.hpp"
#include "random_graph.hpp"

namespace espalier {
namespace {

TEST(EvaluationWork, CountedByHand) {
  // 0 <- 1 4 5, 1 <- 4, 2 <- 2, 3 <- 0 4 5, 4 <- 0, 5 <- 4
  const Csr<std::int32_t> a = {6, 6, {0, 3, 4, 5, 8, 9, 10}, {1, 4, 5, 4, 2, 0, 4, 5, 0, 4}, {}};
  // Blocks {0 1 2} and {3 4 5}, chunks that read 6, a row each at least: {0 1} and its 4 entries
  // want 4 5 of the other block, {2} nothing; {3 4} and its 4 entries want 0, {5} nothing.
  const auto two = count_evaluation(a, block_partition(6, 2), 1, {6, 1});
  EXPECT_EQ(two.chunks, 2);
  EXPECT_EQ(two.largest_rows, 2);
  EXPECT_EQ(two.remote_rows, 3);
  EXPECT_EQ(two.most_remote_rows, 2);
  EXPECT_EQ(two.largest_input, 4);    // {0 1} and 4 5; {3 4} and 0 5
  EXPECT_EQ(two.largest_entries, 4);  // of either
  // Two copies share each block: {0 1}, {2}, {3 4}, {5}; a vertex that both halves want
  // travels to each.
  const auto shared = count_evaluation(a, block_partition(6, 2), 2, {64, 1});
  EXPECT_EQ(shared.chunks, 1);
  EXPECT_EQ(shared.remote_rows, 3);
  // Chunks of one row: 0 wants 4 5, 1 wants 4, 3 wants 0, 4 wants 0.
  EXPECT_EQ(count_evaluation(a, block_partition(6, 2), 1, {0, 1}).remote_rows, 5);
  EXPECT_EQ(count_evaluation(a, block_partition(6, 1), 3, {0, 1}).remote_rows, 0) << "one block row";
  // Chunks of two rows at least, whatever they read.
  const auto least = count_evaluation(a, block_partition(6, 2), 1, {0, 2});
  EXPECT_EQ(least.chunks, 2);
  EXPECT_EQ(least.largest_entries, 4);
}

// What one chunk reads is within the limit wherever the hubs are; every row is in one chunk.
TEST(EvaluationWork, NoChunkReadsMoreForHubs) {
  constexpr std::int64_t kRows = 500;
  std::vector<std::int64_t> entries(kRows, 3);
  for (std::int64_t k = 100; k < 110; ++k) entries[k] = 400;
  const ChunkLimit limit = {900, 1};
  std::int64_t total = 0, chunks = 0;
  for (std::int64_t from = 0, to = 0; from < kRows; from = to, ++chunks) {
    to = chunk_end(from, kRows, limit, [&](std::int64_t k) { return entries[k]; });
    ASSERT_GT(to, from);
    std::int64_t reads = 0;
    for (auto k = from; k < to; ++k) reads += 1 + entries[k];
    EXPECT_LE(reads, limit.reads);
    if (to < kRows) EXPECT_GT(reads + 1 + entries[to], limit.reads) << "room for one more row";
    total += reads;
  }
  EXPECT_EQ(total, kRows + 490 * 3 + 10 * 400);
  // What comes of rows counts, too; few rows are a chunk by themselves only where they read little.
  EXPECT_EQ(chunk_end(0, kRows, {900, 1, 27}, [&](std::int64_t k) { return entries[k]; }), 30);
  const auto hubs = [](std::int64_t k) { return k == 3 ? 2 * ChunkLimit::kFewReads : 3; };
  EXPECT_EQ(chunk_end(0, kRows, {900, 64}, hubs), 3);
  EXPECT_EQ(chunk_end(3, kRows, {900, 64}, hubs), 4);
  // One that reads more than a chunk may is a chunk of its own.
  EXPECT_EQ(chunk_end(100, kRows, {10, 1}, [&](std::int64_t k) { return entries[k]; }), 101);
}

// Vertices renumbered part after part are owned in ranges, and nothing else has changed.
TEST(EvaluationWork, OfAMapIsThatOfTheRenumberedGraph) {
  constexpr std::int64_t kVertices = 300;
  const auto a = random_graph<std::int32_t>(kVertices, 5, false, test_seed(4));
  const auto blocks = ownership_of(Owned::kAtRandom, kVertices, 4);
  std::vector<std::int64_t> begins = {0};
  for (int part = 0; part < 4; ++part) begins.push_back(begins.back() + blocks.size(part));
  const auto number = [&](std::int64_t v) { return begins[blocks.owner(v)] + blocks.local(v); };
  Csr<std::int32_t> renumbered;
  renumbered.rows = renumbered.columns = kVertices;
  for (int part = 0; part < 4; ++part)
    for (std::int64_t k = 0; k < blocks.size(part); ++k) {
      for (const auto u : a.row_indices(blocks.vertex(part, k)))
        renumbered.indices.push_back(static_cast<std::int32_t>(number(u)));
      renumbered.indptr.push_back(std::ssize(renumbered.indices));
    }
  for (const int copies : {1, 3}) {
    const auto found = count_evaluation(a, blocks, copies, {100, 8}),
               expected = count_evaluation(renumbered, RowPartition(begins), copies, {100, 8});
    EXPECT_EQ(found.chunks, expected.chunks);
    EXPECT_EQ(found.remote_rows, expected.remote_rows);
    EXPECT_EQ(found.most_remote_rows, expected.most_remote_rows);
    EXPECT_EQ(found.largest_input, expected.largest_input);
    EXPECT_EQ(found.largest_entries, expected.largest_entries);
  }
}

TEST(EvaluationWork, AnEstimateAgreesWithTheCountOfRandomColumns) {
  constexpr std::int64_t kVertices = 3000, kDegree = 6;
  Csr<std::int32_t> a;
  a.rows = a.columns = kVertices;
  for (std::int64_t v = 0; v < kVertices; ++v) {
    std::vector<std::int32_t> columns;
    const RandomStream stream = {.seed = test_seed(3), .row = static_cast<std::uint64_t>(v)};
    for (std::uint64_t k = 0; k < kDegree; ++k)
      columns.push_back(static_cast<std::int32_t>(random_below(stream, k, kVertices)));
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    a.indices.insert(a.indices.end(), columns.begin(), columns.end());
    a.indptr.push_back(std::ssize(a.indices));
  }
  for (const auto& [rows, copies] : {std::pair(1, 1), std::pair(3, 1), std::pair(4, 2)}) {
    const auto counted = count_evaluation(a, block_partition(kVertices, rows), copies, {1400});
    const auto estimated = estimate_evaluation(
        static_cast<double>(kVertices), static_cast<double>(a.entries()), kDegree, rows, copies, {1400});
    EXPECT_EQ(estimated.chunks, counted.chunks);
    EXPECT_NEAR(estimated.remote_rows, counted.remote_rows, 0.06 * counted.remote_rows) << rows;
    EXPECT_NEAR(estimated.largest_input, counted.largest_input, 0.06 * counted.largest_input) << rows;
  }
}

}  // namespace
}  // namespace espalier
