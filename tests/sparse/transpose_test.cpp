// ranks: 1
// Laws: entry (i, j) of the transpose is entry (j, i); its rows are ascending, repeated entries keep their
// order; twice is the sorted original; threads do not matter.
#include "espalier/sparse/transpose.hpp"

#include <gtest/gtest.h>

#include "dense/random_matrices.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

TEST(Transpose, HandChecked) {
  Block block;  // [. a b; c . d], written d before c, and a second entry e at (0, 2)
  block.rows = 2;
  block.columns = 3;
  block.indptr = {0, 3, 5};
  block.indices = {1, 2, 2, 2, 0};
  block.values = {1, 2, 5, 4, 3};
  const Block t = transpose(block);
  EXPECT_EQ(t.rows, 3);
  EXPECT_EQ(t.columns, 2);
  EXPECT_EQ(t.indptr, (Buffer<std::int64_t>{0, 1, 2, 5}));
  EXPECT_EQ(t.indices, (Buffer<std::int32_t>{1, 0, 0, 0, 1}));
  EXPECT_EQ(t.values, (Buffer<float>{3, 1, 2, 5, 4}));
}

TEST(Transpose, RandomBlocks) {
  std::mt19937_64 random(test_seed(4));
  Block reused;
  for (const std::int64_t rows : {0, 1, 7, 60})
    for (const std::int64_t columns : {0, 1, 9, 40})
      for (const int most : {0, 2, 20}) {
        Block block = random_block_matrix(rows, columns, most, random);
        transpose(Cpu{1}, block, reused);
        EXPECT_EQ(to_dense(reused).data, plain_transpose(to_dense(block)).data);
        for (std::int64_t i = 0; i < reused.rows; ++i)
          EXPECT_TRUE(std::ranges::is_sorted(reused.row_indices(i)));
        EXPECT_EQ(transpose(transpose(reused)).indices, reused.indices);
        EXPECT_EQ(transpose(transpose(reused)).values, reused.values);
        block.values.clear();
        transpose(Cpu{1}, block, reused);
        EXPECT_FALSE(reused.has_values());
        EXPECT_EQ(to_dense(reused).data, plain_transpose(to_dense(block)).data);
      }
}

TEST(Transpose, ThreadsDoNotMatter) {
  std::mt19937_64 random(test_seed(5));
  for (const std::int64_t columns : {1, 100, 30000}) {
    const Block block = random_block_matrix(7000, columns, 20, random);
    const Block one = transpose(block);
    for (const int threads : {2, 3, 7}) {
      Block many;
      transpose(Cpu{threads}, block, many);
      EXPECT_EQ(many.indptr, one.indptr);
      EXPECT_EQ(many.indices, one.indices);
      EXPECT_EQ(many.values, one.values);
    }
  }
}

}  // namespace
}  // namespace espalier
