// ranks: 1
// Laws: a hand-checked minibatch of each convolution, forward and backward; all results are those
// of the formulas by Eigen's products, in both orders of multiplication.
#include "espalier/nn/convolution.hpp"

#include <gtest/gtest.h>

#include "dense/eigen_oracle.hpp"
#include "dense/random_matrices.hpp"
#include "espalier/nn/gcn.hpp"
#include "espalier/nn/sage.hpp"
#include "espalier/sparse/transpose.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

template <class T>
Matrix<T> matrix(std::int64_t rows, std::int64_t columns, std::initializer_list<T> data) {
  Matrix<T> m(rows, columns);
  std::copy(data.begin(), data.end(), m.data.begin());
  return m;
}

/// Two destinations, three sources; the first has the mean of sources 1 and 2, the second source 2.
Block small_block() {
  Block block;
  block.rows = 2;
  block.columns = 3;
  block.indptr = {0, 2, 3};
  block.indices = {1, 2, 2};
  block.values = {0.5f, 0.5f, 1.0f};
  return block;
}

TEST(Sage, HandChecked) {
  const Block block = small_block(), transposed = transpose(block);
  const auto x = matrix<double>(3, 1, {1, 2, 4});
  const auto self = matrix<double>(1, 2, {10, 0}), neighbour = matrix<double>(1, 2, {1, 100}),
             bias = matrix<double>(1, 2, {0.5, 0.25});
  for (const ProductOrder order : {ProductOrder::kAggregateFirst, ProductOrder::kMultiplyFirst}) {
    Matrix<double> product, z, dself(1, 2), dneighbour(1, 2), dx;
    sage_forward<double>(Cpu{1}, block, order, x, {self, neighbour, bias}, product, z);
    EXPECT_EQ(z.data, (Buffer<double>{10 + 3 + 0.5, 300 + 0.25, 20 + 4 + 0.5, 400 + 0.25}));
    const auto dz = matrix<double>(2, 2, {1, 0, 0, 2});
    sage_backward<double>(Cpu{1}, block, transposed, order, x, {self, neighbour, bias}, product, dz, dself,
                          dneighbour, &dx);
    EXPECT_EQ(dself.data, (Buffer<double>{1, 4}));
    EXPECT_EQ(dneighbour.data, (Buffer<double>{3, 8}));
    EXPECT_EQ(dx.data, (Buffer<double>{10, 0.5, 0.5 + 200}));
  }
}

TEST(Gcn, HandChecked) {
  const Block block = small_block(), transposed = transpose(block);
  const auto x = matrix<double>(3, 1, {1, 2, 4});
  const auto weight = matrix<double>(1, 2, {1, 100}), bias = matrix<double>(1, 2, {0.5, 0.25});
  for (const ProductOrder order : {ProductOrder::kAggregateFirst, ProductOrder::kMultiplyFirst}) {
    Matrix<double> product, z, dweight(1, 2), dx;
    gcn_forward<double>(Cpu{1}, block, order, x, {weight, bias}, product, z);
    EXPECT_EQ(z.data, (Buffer<double>{3.5, 300.25, 4.5, 400.25}));
    const auto dz = matrix<double>(2, 2, {1, 0, 0, 2});
    gcn_backward<double>(Cpu{1}, transposed, order, x, {weight, bias}, product, dz, dweight, &dx);
    EXPECT_EQ(dweight.data, (Buffer<double>{3, 8}));
    EXPECT_EQ(dx.data, (Buffer<double>{0, 0.5, 0.5 + 200}));
  }
}

/// All results of one SAGE layer, in one order.
std::vector<Matrix<double>> sage_results(const BlockView<>& block, ProductOrder order,
                                         const std::vector<Matrix<double>>& in) {
  const auto &x = in[0], &self = in[1], &neighbour = in[2], &bias = in[3], &dz = in[4];
  std::vector<Matrix<double>> out = {{}, {self.rows, self.columns}, {self.rows, self.columns}, {}};
  Matrix<double> product;
  sage_forward<double>(Cpu{1}, block, order, x, {self, neighbour, bias}, product, out[0]);
  sage_backward<double>(Cpu{1}, block, transpose(block), order, x, {self, neighbour, bias}, product, dz,
                        out[1], out[2], &out[3]);
  return out;
}

/// All results of one GCN layer, in one order; its weights are the neighbours' of `in`.
std::vector<Matrix<double>> gcn_results(const BlockView<>& block, const BlockView<>& transposed_block,
                                        ProductOrder order, const std::vector<Matrix<double>>& in) {
  const auto &x = in[0], &weight = in[2], &bias = in[3], &dz = in[4];
  std::vector<Matrix<double>> out = {{}, {weight.rows, weight.columns}, {}};
  Matrix<double> product;
  gcn_forward<double>(Cpu{1}, block, order, x, {weight, bias}, product, out[0]);
  gcn_backward<double>(Cpu{1}, transposed_block, order, x, {weight, bias}, product, dz, out[1], &out[2]);
  return out;
}

/// a, with b added to its first rows.
Matrix<double> plus(Matrix<double> a, const Matrix<double>& b) {
  for (std::size_t e = 0; e < b.data.size(); ++e) a.data[e] += b.data[e];
  return a;
}

/// The formulas of gcn.hpp.
std::vector<Matrix<double>> gcn_by_eigen(const Block& block, const std::vector<Matrix<double>>& in) {
  const auto &x = in[0], &weight = in[2], &bias = in[3], &dz = in[4];
  const auto aggregate = product_by_eigen(block, x);
  Matrix<double> ones(block.rows, 1);
  std::ranges::fill(ones.data, 1.0);
  return {plus(product_by_eigen(aggregate, weight), product_by_eigen(ones, bias)),
          product_by_eigen(transposed(aggregate), dz),
          product_by_eigen(transposed_product_by_eigen(block, dz), transposed(weight))};
}

/// The formulas of sage.hpp: those of GCN, and what the destinations' own rows add.
std::vector<Matrix<double>> sage_by_eigen(const Block& block, const std::vector<Matrix<double>>& in) {
  const auto &x = in[0], &self = in[1], &dz = in[4];
  const auto of_neighbours = gcn_by_eigen(block, in);
  Matrix<double> destinations(block.rows, x.columns);
  std::copy_n(x.data.begin(), destinations.data.size(), destinations.data.begin());
  return {plus(of_neighbours[0], product_by_eigen(destinations, self)),
          product_by_eigen(transposed(destinations), dz), of_neighbours[1],
          plus(of_neighbours[2], product_by_eigen(dz, transposed(self)))};
}

void expect_near(const std::vector<Matrix<double>>& found, const std::vector<Matrix<double>>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t k = 0; k < found.size(); ++k)
    EXPECT_LT(largest_difference(found[k], expected[k]), 1e-12) << "result " << k;
}

TEST(Convolution, IsTheFormulaInBothOrders) {
  std::mt19937_64 random(test_seed(20));
  for (const std::int64_t in : {1, 5, 40})
    for (const std::int64_t out : {1, 7, 30}) {
      const Block block = random_minibatch({50, 20}, random)[0];
      const std::vector<Matrix<double>> tensors{
          random_matrix<double>(50, in, random), random_matrix<double>(in, out, random),
          random_matrix<double>(in, out, random), random_matrix<double>(1, out, random),
          random_matrix<double>(20, out, random)};
      for (const ProductOrder order : {ProductOrder::kAggregateFirst, ProductOrder::kMultiplyFirst}) {
        SCOPED_TRACE(testing::Message() << in << " x " << out << (order == ProductOrder::kAggregateFirst));
        expect_near(sage_results(block, order, tensors), sage_by_eigen(block, tensors));
        expect_near(gcn_results(block, transpose(block), order, tensors), gcn_by_eigen(block, tensors));
      }
    }
}

TEST(Convolution, ThePlaceInCommonArraysDoesNotMatter) {
  std::mt19937_64 random(test_seed(21));
  const Block block = random_minibatch({50, 20}, random)[0];
  const SharedBlock shared(block, 77), shared_transpose(transpose(block), 1234);
  const std::vector<Matrix<double>> tensors{
      random_matrix<double>(50, 6, random), random_matrix<double>(6, 7, random),
      random_matrix<double>(6, 7, random), random_matrix<double>(1, 7, random),
      random_matrix<double>(20, 7, random)};
  for (const ProductOrder order : {ProductOrder::kAggregateFirst, ProductOrder::kMultiplyFirst}) {
    const auto sage = sage_results(block, order, tensors),
               sage_in_common = sage_results(shared.block, order, tensors);
    for (std::size_t k = 0; k < sage.size(); ++k) EXPECT_TRUE(same_bits(sage_in_common[k], sage[k])) << k;
    const auto gcn = gcn_results(block, transpose(block), order, tensors),
               gcn_in_common = gcn_results(shared.block, shared_transpose.block, order, tensors);
    for (std::size_t k = 0; k < gcn.size(); ++k) EXPECT_TRUE(same_bits(gcn_in_common[k], gcn[k])) << k;
  }
}

TEST(Convolution, OrderFollowsTheCost) {
  std::mt19937_64 random(1);
  const Block square = random_minibatch({1000, 1000}, random)[0],
              fanned_out = random_minibatch({20000, 1000}, random)[0];
  EXPECT_EQ(cheaper_order(square, 1433, 16, true), ProductOrder::kMultiplyFirst);
  EXPECT_EQ(cheaper_order(square, 16, 1433, true), ProductOrder::kAggregateFirst);
  EXPECT_EQ(cheaper_order(fanned_out, 602, 256, false), ProductOrder::kAggregateFirst)
      << "a GEMM over all sources would be dearer";
}

}  // namespace
}  // namespace espalier
