// ranks: 1 2 3 4 6
// Laws: a RowStore that is spread over ranks is saved and read back by its own rows, on every grid
// and whoever owns which vertex the same bytes; a store on another grid goes on from them with the
// same rows; one of another shape refuses them.
#include <gtest/gtest.h>

#include <cmath>

#include "espalier/feature/row_store.hpp"
#include "feature/row_store_cases.hpp"
#include "mpi_test.hpp"
#include "train/checkpoint_bytes.hpp"

namespace espalier {
namespace {

RowStore store_of(const Grid& grid, const Matrix<float>& rows, Owned owned = Owned::kInRanges) {
  const auto ownership = ownership_of(owned, rows.rows, grid.rows());
  return {grid, ownership, rows_of_part(rows, ownership, grid.row())};
}

std::string bytes_of(const Grid& grid, RowStore& store) {
  Checkpoint checkpoint;
  checkpoint.state.tensors = {store.state(Cpu{1}, "embedding/author")};
  return checkpoint_bytes(grid.world(), checkpoint);
}

TEST(StoreCheckpoint, EveryGridSavesTheSameBytesAndReadsThemBack) {
  for (const auto& [vertices, width] : {std::pair{1, 4}, {5, 3}, {3001, 700}}) {
    const auto rows = first_rows(vertices, width);
    const Grid whole(test_world(), test_world().size());
    auto first = store_of(whole, rows);
    const auto expected = bytes_of(whole, first);
    for (const int c : divisors(test_world().size()))
      for (const auto owned : kAllOwned) {
        SCOPED_TRACE(fmt::format("c {} vertices {} owned {}", c, vertices, static_cast<int>(owned)));
        const Grid grid(test_world(), c);
        auto store = store_of(grid, rows, owned);
        EXPECT_TRUE(bytes_of(grid, store) == expected);
        Matrix<float> zeros(vertices, width);
        std::ranges::fill(zeros.data, 0.0f);
        auto other = store_of(grid, zeros, owned);
        const auto checkpoint = checkpoint_from(test_world(), expected);
        other.restore(Cpu{1}, checkpoint.state.tensors.at(0));
        EXPECT_TRUE(std::get<Matrix<float>>(other.block()).data ==
                    std::get<Matrix<float>>(store.block()).data);
      }
  }
}

TEST(StoreCheckpoint, AnotherShapeIsRefused) {
  const Grid grid(test_world(), 1);
  auto store = store_of(grid, first_rows(9, 4)), other = store_of(grid, first_rows(9, 3));
  const auto checkpoint = checkpoint_from(test_world(), bytes_of(grid, store));
  try {
    other.restore(Cpu{1}, checkpoint.state.tensors.at(0));
    ADD_FAILURE() << "no error";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::kInput);
    EXPECT_STREQ(error.what(), "embedding/author is 9 x 4 in the checkpoint and 9 x 3 here");
  }
}

}  // namespace
}  // namespace espalier
