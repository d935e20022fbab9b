// ranks: 1
// Laws: SpMM is Eigen's sparse product, for any shape; its transpose too; a row depends on its own
// entries and the rows of X they name only, bit for bit, wherever in common arrays the block lies.
// Any number of threads: nn/layer_test.cpp.
#include "espalier/dense/spmm.hpp"

#include <gtest/gtest.h>

#include "dense/eigen_oracle.hpp"
#include "dense/random_matrices.hpp"
#include "espalier/sparse/transpose.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

template <class T>
void expect_products(const Block& block, std::int64_t f, std::mt19937_64& random) {
  SCOPED_TRACE(testing::Message() << block.rows << " x " << block.columns << " f " << f << " bytes "
                                  << sizeof(T));
  const auto x = random_matrix<T>(block.columns, f, random), d = random_matrix<T>(block.rows, f, random);
  Matrix<T> y(block.rows, f), back(block.columns, f);
  const double tolerance = sizeof(T) == 4 ? 1e-4 : 1e-12;
  spmm<T>(Cpu{1}, block, x, y);
  EXPECT_LT(largest_difference(y, product_by_eigen(block, in_double(x))), tolerance);
  spmm<T>(Cpu{1}, transpose(block), d, back);
  EXPECT_LT(largest_difference(back, transposed_product_by_eigen(block, in_double(d))), tolerance);
  auto sum = y;
  spmm<T>(Cpu{1}, block, x, sum, Update::kAccumulate);
  for (auto& value : y.data) value *= 2;
  EXPECT_LT(largest_difference(sum, y), tolerance);
}

TEST(Spmm, AgreesWithEigen) {
  std::mt19937_64 random(test_seed(7));
  for (const std::int64_t rows : {0, 1, 2, 50})
    for (const std::int64_t columns : {0, 1, 3, 90})
      for (const int most : {0, 1, 3, 30})  // with one column every entry of a row is a repetition
        for (const std::int64_t f : {0, 1, 3, 16, 41, 100, 129}) {
          Block block = random_block_matrix(rows, columns, most, random);
          if (random() % 4 == 0) block.values.clear();  // all 1
          expect_products<float>(block, f, random);
          expect_products<double>(block, f, random);
        }
}

TEST(Spmm, RowsDoNotKnowWhereTheyStand) {
  std::mt19937_64 random(test_seed(8));
  const Block block = random_block_matrix(200, 80, 20, random);
  for (const std::int64_t f : {1, 7, 47, 100, 256}) {
    const auto x = random_matrix<float>(80, f, random);
    Matrix<float> whole(200, f);
    spmm<float>(Cpu{1}, block, x, whole);
    for (std::int64_t i = 0; i < 200; ++i) {
      Block row;  // row i alone, over the rows of X it needs, renumbered
      row.rows = 1;
      row.columns = block.row_size(i);
      Matrix<float> needed(row.columns, f), y(1, f);
      for (std::int64_t e = 0; e < row.columns; ++e) {
        row.indices.push_back(static_cast<std::int32_t>(e));
        row.values.push_back(block.row_values(i)[static_cast<std::size_t>(e)]);
        std::copy_n(x.row(block.row_indices(i)[static_cast<std::size_t>(e)]), f, needed.row(e));
      }
      row.indptr.push_back(row.columns);
      spmm<float>(Cpu{1}, row, needed, y);
      EXPECT_TRUE(std::equal(y.row(0), y.row(0) + f, whole.row(i)));
    }
  }
}

template <class T>
void expect_place_does_not_matter(const Block& block, const Matrix<T>& x) {
  const SharedBlock shared(block, 1000);
  for (const auto update : {Update::kOverwrite, Update::kAccumulate}) {
    auto own = filled_matrix(block.rows, x.columns, T{3}), in_common = own;
    spmm<T>(Cpu{1}, block, x, own, update);
    spmm<T>(Cpu{2}, shared.block, x, in_common, update);
    EXPECT_TRUE(same_bits(in_common, own)) << x.columns;
  }
}

TEST(Spmm, ThePlaceInCommonArraysDoesNotMatter) {
  std::mt19937_64 random(test_seed(11));
  for (const bool values : {true, false})
    for (const std::int64_t f : {1, 16, 41, 300}) {
      Block block = random_block_matrix(100, 50, 12, random);
      if (!values) block.values.clear();
      expect_place_does_not_matter(block, random_matrix<float>(50, f, random));
      expect_place_does_not_matter(block, random_matrix<double>(50, f, random));
    }
}

}  // namespace
}  // namespace espalier
