// ranks: 1 2 3 4 6
// Law of a RowStore: what it says a fetch asks of others is what the fetch asks of them and
// receives. The rows themselves: store_test, embedding_store_test.
#include "espalier/feature/row_store.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "mpi_test.hpp"
#include "row_store_cases.hpp"

namespace espalier {
namespace {

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
        for (const auto id : list) others += !store.storage().has(id);
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

}  // namespace
}  // namespace espalier
