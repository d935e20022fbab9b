// ranks: 1 2 3 4 6
// Laws of a RowStore: rows pushed from any ranks are there as one loop over all minibatches, by
// their numbers, would have left them, to the last bit, on every grid, in every copy and whoever
// owns which vertex; what is then fetched are these, by a fetch that was under way too; evenly
// spread ids move what the model expects; features cannot be pushed to.
#include "espalier/feature/row_store.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "espalier/feature/store.hpp"
#include "mpi_test.hpp"
#include "row_store_cases.hpp"

namespace espalier {
namespace {

void push(RowStore& store, const std::vector<PushedBatch>& batches, Push mode, int threads = 2) {
  std::vector<std::span<const std::int64_t>> lists;
  std::vector<std::int64_t> numbers;
  std::vector<Matrix<float>> rows;
  for (const auto& batch : batches) {
    lists.emplace_back(batch.ids);
    numbers.push_back(batch.number);
    rows.push_back(batch.rows);
  }
  store.push(Cpu{threads}, lists, numbers, rows, mode, "push");
}

// All of them, backwards: what expect_rows asks for.
std::vector<std::int64_t> all_ids(const Matrix<float>& rows) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(rows.rows));
  std::iota(ids.rbegin(), ids.rend(), std::int64_t{0});
  return ids;
}

void expect_fetched(const std::vector<std::int64_t>& ids, const Matrix<float>& fetched,
                    const Matrix<float>& expected) {
  for (std::size_t k = 0; k < ids.size(); ++k)
    EXPECT_TRUE(std::equal(expected.row(ids[k]), expected.row(ids[k]) + expected.columns,
                           fetched.row(static_cast<std::int64_t>(k))));
}

void expect_rows(const Grid& grid, const RowStore& store, const Matrix<float>& expected) {
  const auto own = rows_of_part(expected, store.ownership(), grid.row());
  EXPECT_EQ(std::get<Matrix<float>>(store.block()).data, own.data) << "in every copy";
  const auto ids = all_ids(expected);
  const std::vector<std::span<const std::int64_t>> lists = {ids};
  std::vector<Matrix<float>> fetched;
  store.fetch(Cpu{1}, lists, fetched, "fetch");
  expect_fetched(ids, fetched[0], expected);
}

void expect_pushes(const Grid& grid, Owned owned, std::int64_t vertices, std::int64_t width) {
  const auto seed = test_seed(7);
  auto expected = first_rows(vertices, width);
  const auto ownership = ownership_of(owned, vertices, grid.rows());
  RowStore store(grid, ownership, rows_of_part(expected, ownership, grid.row()));
  for (std::uint64_t round = 0; round < 4; ++round) {
    SCOPED_TRACE(fmt::format("seed {} round {}", seed, round));
    const auto batches = random_batches(seed + round, round == 2 ? 0 : 11, vertices, width);
    const auto mode = round == 1 ? Push::kOverwrite : Push::kAdd;
    const auto ids = all_ids(expected);
    const std::vector<std::span<const std::int64_t>> lists = {ids};
    PendingFetch under_way;
    store.begin_fetch(Cpu{1}, lists, under_way, "fetch");
    push(store, of_rank(batches, test_world().rank(), test_world().size()), mode,
         static_cast<int>(round) + 1);
    push_in_a_loop(batches, mode, expected);
    expect_rows(grid, store, expected);
    store.correct(Cpu{1}, under_way, "fetch");
    std::vector<Matrix<float>> fetched;
    store.finish_fetch(Cpu{1}, under_way, fetched);
    expect_fetched(ids, fetched[0], expected);
  }
}

TEST(RowStore, CountsWhatAFetchAsksOfOthers) {
  const auto& world = test_world();
  for (const auto owned : kAllOwned)
    for (int copies = 1; copies <= world.size(); ++copies) {
      if (world.size() % copies != 0) continue;
      const Grid grid(world, copies);
      const auto expected = first_rows(103, 3);
      const auto ownership = ownership_of(owned, 103, grid.rows());
      const RowStore store(grid, ownership, rows_of_part(expected, ownership, grid.row()));
      EXPECT_EQ(store.fetched_bytes(), 4 + 12);
      std::vector<std::int64_t> even, few;
      for (std::int64_t id = 0; id < 103; id += 2) even.push_back(id);
      if (world.rank() != 1) few = {102, 0, 51};
      const std::vector<std::span<const std::int64_t>> lists = {even, few};
      std::int64_t others = 0;
      for (const auto& list : lists)
        for (const auto id : list) others += store.is_remote(id);
      EXPECT_EQ(store.count_remote(Cpu{2}, lists), others);
      const auto before = grid.traffic().of("fetch").bytes_received;
      PendingFetch fetch;
      store.begin_fetch(Cpu{1}, lists, fetch, "fetch");
      EXPECT_EQ(fetch.remote_rows(), others);
      std::vector<Matrix<float>> rows;
      store.finish_fetch(Cpu{1}, fetch, rows);
      EXPECT_EQ(store.count_remote(Cpu{1}, {}), 0);
      // Beside counts, 8 bytes of each other rank of the column, ids come to whom they
      // are asked of.
      std::vector<std::int64_t> bytes = {
          grid.traffic().of("fetch").bytes_received - before - 8 * (grid.rows() - 1),
          others * store.fetched_bytes()};
      world.all_reduce(std::span<std::int64_t>(bytes), Reduction::kSum, "test");
      EXPECT_EQ(bytes[0], bytes[1]);
      EXPECT_EQ(bytes[1] > 0, grid.rows() > 1);
    }
}

TEST(RowStore, PushedRowsAreThoseOfALoopOverAllMinibatches) {
  for (const int c : divisors(test_world().size()))
    for (const auto owned : kAllOwned)
      for (const auto& [vertices, width] : {std::pair{1, 3}, {7, 1}, {60, 5}, {200, 32}}) {
        SCOPED_TRACE(
            fmt::format("c {} owned {} vertices {} width {}", c, static_cast<int>(owned), vertices, width));
        expect_pushes(Grid(test_world(), c), owned, vertices, width);
      }
}

TEST(RowStore, TheCasesTellOneOrderFromAnother) {
  auto batches = random_batches(7, 11, 60, 5);
  for (const auto mode : {Push::kAdd, Push::kOverwrite}) {
    auto forward = first_rows(60, 5), backward = first_rows(60, 5);
    push_in_a_loop(batches, mode, forward);
    std::ranges::reverse(batches);
    push_in_a_loop(batches, mode, backward);
    EXPECT_NE(forward.data, backward.data);
    std::ranges::reverse(batches);
    for (auto& batch : batches) {  // within a minibatch
      std::ranges::reverse(batch.ids);
      for (std::int64_t k = 0; k < batch.rows.rows / 2; ++k)
        std::swap_ranges(batch.rows.row(k), batch.rows.row(k) + 5, batch.rows.row(batch.rows.rows - 1 - k));
    }
    auto turned = first_rows(60, 5);
    push_in_a_loop(batches, mode, turned);
    EXPECT_NE(forward.data, turned.data);
    batches = random_batches(7, 11, 60, 5);
  }
}

// Every rank pushes as many rows, as many to each block row.
TEST(RowStore, PredictsWhatEvenlySpreadIdsMove) {
  constexpr std::int64_t kRows = 24, kWidth = 6;  // rows divide by p / c = 1, 2, 3, 4, 6
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    const auto partition = block_partition(kRows, grid.rows());
    auto expected = first_rows(kRows, kWidth);
    RowStore store(grid, partition, rows_of_part(expected, partition, grid.row()));
    PushedBatch batch;
    batch.number = test_world().rank();
    batch.ids.resize(kRows);
    std::iota(batch.ids.begin(), batch.ids.end(), std::int64_t{0});
    batch.rows = first_rows(kRows, kWidth);
    grid.traffic().clear();
    push(store, {batch}, Push::kAdd);
    const auto volume = grid.traffic().of("push");
    EXPECT_DOUBLE_EQ(volume.predicted_messages, static_cast<double>(volume.messages)) << "c " << c;
    EXPECT_DOUBLE_EQ(volume.predicted_bytes, static_cast<double>(volume.bytes_received)) << "c " << c;
    EXPECT_EQ(test_world().size() == 1, volume.bytes_received == 0);
  }
}

// The smallest graph whose ids take 8 bytes, of whose last rows the store has two in each block.
TEST(RowStore, IdsOfEightBytes) {
  constexpr std::int64_t kWide = (std::int64_t{1} << 31) + 12, kKept = 2, kWidth = 3;
  const Grid grid(test_world(), 1);
  const auto partition = block_partition(kWide, grid.rows());
  Matrix<float> block(kKept, kWidth);
  std::ranges::fill(block.data, 0.0f);
  RowStore store(grid, partition, std::move(block));
  PushedBatch batch;
  batch.number = 5 * test_world().rank();
  for (int part = 0; part < grid.rows(); ++part) batch.ids.push_back(partition.begin(part) + 1);
  batch.rows.resize(grid.rows(), kWidth);
  std::ranges::fill(batch.rows.data, static_cast<float>(test_world().rank() + 1));
  grid.traffic().clear();
  push(store, {batch}, Push::kAdd);
  const auto& own = std::get<Matrix<float>>(store.block());
  const int p = test_world().size();
  for (std::int64_t j = 0; j < kWidth; ++j) {
    EXPECT_EQ(own(0, j), 0.0f);
    EXPECT_EQ(own(1, j), static_cast<float>(p * (p + 1) / 2));
  }
  EXPECT_EQ(grid.traffic().of("push").bytes_received, (p - 1) * (8 + 8 + 8 + 4 * kWidth));
}

TEST(RowStore, APushAfterALargerOneAllocatesNothing) {
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    const auto partition = block_partition(60, grid.rows());
    RowStore store(grid, partition, rows_of_part(first_rows(60, 5), partition, grid.row()));
    const auto batches =
        of_rank(random_batches(test_seed(7), 11, 60, 5), test_world().rank(), test_world().size());
    push(store, batches, Push::kAdd);
    const auto before_rows = buffer_allocations();  // the rows that `push` makes are in Buffers too
    for (const auto& batch : batches) Matrix<float>(batch.rows);
    const auto of_rows = buffer_allocations() - before_rows;
    const auto before = buffer_allocations();
    push(store, batches, Push::kOverwrite);
    EXPECT_EQ(buffer_allocations() - before, of_rows);
  }
}

template <class Store>
concept TakesPushes = requires(Store& store, Cpu cpu, IdLists lists, std::span<const std::int64_t> batches,
                               std::span<const Matrix<float>> rows) {
  store.push(cpu, lists, batches, rows, Push::kAdd, "push");
};

TEST(RowStore, FeaturesAreTheCaseThatIsOnlyRead) {
  EXPECT_TRUE(TakesPushes<RowStore>);
  EXPECT_FALSE(TakesPushes<FeatureStore>);
}

}  // namespace
}  // namespace espalier
