// ranks: 1 2 4 6 8
// Laws of shared rows: whatever ranks are a node, the rows of a fetch are those of H, bit for bit,
// on every grid, by ranges and by maps; what travels are the rows that no rank of the node owns;
// where every rank reaches all, nothing travels.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "espalier/dense/spmm.hpp"
#include "mpi_test.hpp"
#include "row_store_cases.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kSharedWidth = 3;

float shared_entry(std::int64_t v, std::int64_t j) {
  return static_cast<float>(v) / 8 + static_cast<float>(j) * 16;  // exact as Half, too
}

template <class T>
RowStore shared_store_on(const Grid& grid, const Ownership& ownership) {
  return RowStore(grid, ownership, stored_rows<T>(ownership, grid.row(), kSharedWidth, shared_entry));
}

// Which node a rank is on: all on one, neighbours in pairs, dealt round two, everyone alone, and
// nodes of different sizes.
const std::vector<std::function<int(int)>> kNodes = {
    [](int) { return 0; }, [](int rank) { return rank / 2; }, [](int rank) { return rank % 2; },
    [](int rank) { return rank; }, [](int rank) { return rank >= 3; }};

std::vector<std::int64_t> wanted_by(int rank, std::int64_t n) {
  std::vector<std::int64_t> ids;
  for (std::int64_t v = n - 1; v >= 0; --v)
    if ((v + rank) % 3 != 0) ids.push_back(v);
  return ids;
}

// Of `ids`, those that no rank of this one's node owns.
std::int64_t count_out_of_reach(const Grid& grid, const Ownership& ownership,
                                const std::function<int(int)>& node, const std::vector<std::int64_t>& ids) {
  std::vector<bool> reached(static_cast<std::size_t>(ownership.parts()));
  for (int rank = 0; rank < grid.ranks(); ++rank)
    if (node(rank) == node(grid.world().rank()))
      reached[static_cast<std::size_t>(rank / grid.replication())] = true;
  return std::ranges::count_if(
      ids, [&](std::int64_t v) { return !reached[static_cast<std::size_t>(ownership.owner(v))]; });
}

template <class T>
void expect_shared_fetch(const Grid& grid, const Ownership& ownership, const std::function<int(int)>& node) {
  const auto& world = grid.world();
  auto store = shared_store_on<T>(grid, ownership);
  ASSERT_TRUE(store.share(world.split(node(world.rank()), world.rank())));
  const auto ids = wanted_by(world.rank(), ownership.rows());
  const std::vector<std::span<const std::int64_t>> lists = {ids, std::span(ids).first(ids.size() / 2)};
  std::vector<Matrix<float>> rows;
  PendingFetch pending;
  grid.traffic().clear();
  store.begin_counts({2}, lists, pending, "fetch");
  store.advance({2}, pending, FetchMove::kRows, "fetch");
  store.finish_fetch({2}, pending, rows);
  std::int64_t wrong = 0;
  for (std::size_t m = 0; m < lists.size(); ++m)
    for (std::size_t k = 0; k < lists[m].size(); ++k)
      for (std::int64_t j = 0; j < kSharedWidth; ++j)
        wrong += rows[m](static_cast<std::int64_t>(k), j) != shared_entry(lists[m][k], j);
  EXPECT_EQ(wrong, 0);

  const auto remote =
      count_out_of_reach(grid, ownership, node, ids) +
      count_out_of_reach(grid, ownership, node, {ids.begin(), ids.begin() + std::ssize(ids) / 2});
  EXPECT_EQ(pending.remote_rows(), remote);
  // Over all ranks: each remote row as an id and as values, and a count per pair of a column.
  const auto volume = grid.traffic().of("fetch");
  const auto moved = world.all_reduce(remote, Reduction::kSum, "x");
  const std::int64_t pairs = store.storage().has_all() ? 0 : grid.ranks() * (grid.rows() - 1);
  EXPECT_EQ(world.all_reduce(volume.bytes_received, Reduction::kSum, "x"),
            moved * (4 + kSharedWidth * static_cast<std::int64_t>(sizeof(T))) + 8 * pairs);
  EXPECT_EQ(volume.rounds, store.storage().has_all() || grid.rows() == 1 ? 0 : 3);
}

TEST(SharedRows, AreThoseOfTheMatrixWhateverIsANode) {
  for (const int c : divisors(test_world().size()))
    for (const std::int64_t n : {2, 61}) {
      const Grid grid(test_world(), c);
      for (const auto owned : {Owned::kInRanges, Owned::kAtRandom})
        for (std::size_t node = 0; node < kNodes.size(); ++node) {
          const auto ownership = ownership_of(owned, n, grid.rows());
          SCOPED_TRACE(fmt::format("c {} n {} nodes {} map {}", c, n, node, ownership.is_map()));
          expect_shared_fetch<float>(grid, ownership, kNodes[node]);
          expect_shared_fetch<Half>(grid, ownership, kNodes[node]);
        }
    }
}

// Where every rank wants every row, what the model expects is what is counted.
TEST(SharedRows, AreExpectedByTheModel) {
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    std::vector<std::int64_t> ids(48);  // as many in each block row
    std::iota(ids.begin(), ids.end(), std::int64_t{0});
    const std::vector<std::span<const std::int64_t>> lists = {ids};
    auto store = shared_store_on<float>(grid, block_partition(std::ssize(ids), grid.rows()));
    ASSERT_TRUE(store.share(test_world().split(test_world().rank() / 2, test_world().rank())));
    std::vector<Matrix<float>> rows;
    grid.traffic().clear();
    store.fetch({1}, lists, rows, "fetch");
    const auto volume = grid.traffic().of("fetch");
    const auto sum = [&](double mine) { return test_world().all_reduce(mine, Reduction::kSum, "x"); };
    EXPECT_DOUBLE_EQ(sum(volume.predicted_bytes), sum(static_cast<double>(volume.bytes_received)))
        << "c " << c;
    EXPECT_DOUBLE_EQ(sum(volume.predicted_messages), sum(static_cast<double>(volume.messages))) << "c " << c;
  }
}

// One node, or nodes that have a process column each, reach all; a rank that does not
// makes all ask.
TEST(SharedRows, AreAllLocalWhereEveryRankReachesAll) {
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    const Ownership ownership = block_partition(40, grid.rows());
    const auto all_local = [&](const std::function<int(int)>& node) {
      auto store = shared_store_on<float>(grid, ownership);
      EXPECT_TRUE(store.share(test_world().split(node(test_world().rank()), test_world().rank())));
      return store.storage().has_all();
    };
    EXPECT_TRUE(all_local([](int) { return 0; }));
    EXPECT_TRUE(all_local([&](int rank) { return rank % c; })) << "cyclic";
    EXPECT_EQ(all_local([](int rank) { return rank; }), grid.rows() == 1);
    if (grid.rows() > 1)
      EXPECT_FALSE(all_local([&](int rank) { return rank == grid.ranks() - 1; })) << "one rank apart";
  }
}

// Pages of common memory lie near the rank that wrote them first.
TEST(SharedRows, AreWrittenByAllRanksThatHaveThem) {
  const auto& world = test_world();
  if (world.size() == 1 || world.size() > 4) return;
  const Grid grid(world, world.size());
  constexpr std::int64_t kWide = 1 << 12;  // 16 KiB a row, two pieces of 2 MiB for each rank
  const Ownership ownership = block_partition(256 * world.size(), 1);
  RowStore store(grid, ownership, stored_rows<float>(ownership, 0, kWide, shared_entry));
  const auto faults = [] {
    rusage used = {};
    getrusage(RUSAGE_THREAD, &used);
    return std::int64_t{used.ru_minflt};
  };
  const auto before = faults();
  ASSERT_TRUE(store.share(world));
  const auto mine = faults() - before;
  const auto all = world.all_reduce(mine, Reduction::kSum, "x"),
             most = world.all_reduce(mine, Reduction::kMax, "x");
  EXPECT_LT(4 * most, 3 * all) << most << " pages of " << all << " by one rank";
}

}  // namespace
}  // namespace espalier
