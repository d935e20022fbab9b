// ranks: 1
// Laws: entry (i, j) of the transpose is entry (j, i); its rows are ascending, repeated entries
// keep their order; twice is the sorted original; neither threads nor the place of the block in
// common arrays matter; positions say where each entry came from.
#include "espalier/sparse/transpose.hpp"

#include <gtest/gtest.h>

#include "dense/eigen_oracle.hpp"
#include "dense/random_matrices.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

TEST(Transpose, RandomBlocks) {
  std::mt19937_64 random(test_seed(4));
  Block reused;
  for (const std::int64_t rows : {0, 1, 7, 60})
    for (const std::int64_t columns : {0, 1, 9, 40})
      for (const int most : {0, 2, 20}) {
        Block block = random_block_matrix(rows, columns, most, random);
        transpose(Cpu{1}, block, reused);
        EXPECT_EQ(to_dense(reused).data, transposed(to_dense(block)).data);
        for (std::int64_t i = 0; i < reused.rows; ++i)
          EXPECT_TRUE(std::ranges::is_sorted(reused.row_indices(i)));
        EXPECT_EQ(transpose(transpose(reused)).indices, reused.indices);
        EXPECT_EQ(transpose(transpose(reused)).values, reused.values);
        block.values.clear();
        transpose(Cpu{1}, block, reused);
        EXPECT_FALSE(reused.has_values());
        EXPECT_EQ(to_dense(reused).data, transposed(to_dense(block)).data);
      }
}

// A block in the middle of common arrays is transposed to the bits of its own copy; an entry's row,
// column and value are those that its position names.
TEST(Transpose, NeitherPlaceNorPositionsMatter) {
  std::mt19937_64 random(test_seed(6));
  Block reused;
  Buffer<std::int32_t> positions;
  for (const std::int64_t rows : {0, 1, 60, 7000})
    for (const std::int64_t columns : {0, 1, 40, 30000})
      for (const bool values : {true, false})
        for (const int threads : {1, 3}) {
          Block block = random_block_matrix(rows, columns, 9, random);
          if (!values) block.values.clear();
          const Block expected = transpose(block);
          const SharedBlock shared(block, 12345);
          transpose(Cpu{threads}, shared.block, reused);
          EXPECT_TRUE(same_block(reused, expected));
          transpose(Cpu{threads}, shared.block, reused, &positions);
          EXPECT_TRUE(same_block(reused, expected));
          EXPECT_TRUE(same_block(copy_of(shared.block), block));
          ASSERT_EQ(std::ssize(positions), block.entries());
          for (std::int64_t j = 0; j < reused.rows; ++j)
            for (auto k = static_cast<std::size_t>(reused.row_begin(j));
                 k < static_cast<std::size_t>(reused.row_end(j)); ++k) {
              const auto from = static_cast<std::size_t>(positions[k]);
              if (static_cast<std::int64_t>(k) > reused.row_begin(j))
                EXPECT_LT(positions[k - 1], positions[k]);
              EXPECT_EQ(block.indices[from], j);
              EXPECT_GE(positions[k], block.row_begin(reused.indices[k]));
              EXPECT_LT(positions[k], block.row_end(reused.indices[k]));
              if (values) EXPECT_EQ(block.values[from], reused.values[k]);
            }
        }
}

}  // namespace
}  // namespace espalier
