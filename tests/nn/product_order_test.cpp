// ranks: 1
// Laws: all results are those of the formulas by Eigen's products, in both orders of
// multiplication; so are those of the layer to copy. Threads, places of blocks: layer_test.cpp.
#include "espalier/nn/product_order.hpp"

#include <gtest/gtest.h>

#include "../../src/nn/gcn.inl.hpp"
#include "../../src/nn/sage.inl.hpp"

#include "dense/eigen_oracle.hpp"
#include "dense/random_matrices.hpp"
#include "espalier/sparse/transpose.hpp"
#include "mpi_test.hpp"
#include "template_layer.hpp"

namespace espalier {
namespace {

/// All results of one SAGE layer, in one order.
std::vector<Matrix<double>> sage_results(const BlockView<>& block, ProductOrder order,
                                         const std::vector<Matrix<double>>& in) {
  const auto &x = in[0], &self = in[1], &neighbour = in[2], &bias = in[3], &dz = in[4];
  std::vector<Matrix<double>> out = {{}, {self.rows, self.columns}, {self.rows, self.columns}, {}};
  Matrix<double> product;
  sage_forward<double>(Cpu{1}, block, order, x, self, neighbour, bias, product, out[0]);
  sage_backward<double>(Cpu{1}, block, transpose(block), order, x, self, neighbour, product, dz, out[1],
                        out[2], &out[3]);
  return out;
}

/// All results of one GCN layer, in one order; its weights are the neighbours' of `in`.
std::vector<Matrix<double>> gcn_results(const BlockView<>& block, const BlockView<>& transposed_block,
                                        ProductOrder order, const std::vector<Matrix<double>>& in) {
  const auto &x = in[0], &weight = in[2], &bias = in[3], &dz = in[4];
  std::vector<Matrix<double>> out = {{}, {weight.rows, weight.columns}, {}};
  Matrix<double> product;
  gcn_forward<double>(Cpu{1}, block, order, x, weight, bias, product, out[0]);
  gcn_backward<double>(Cpu{1}, transposed_block, order, x, weight, product, dz, out[1], &out[2]);
  return out;
}

/// Those of the layer to copy, which is gcn's formula.
std::vector<Matrix<double>> template_results(const BlockView<>& block,
                                             const std::vector<Matrix<double>>& in) {
  const auto &x = in[0], &weight = in[2], &bias = in[3], &dz = in[4];
  const LayerShape shape = {.in = weight.rows, .out = weight.columns};
  std::vector<Parameter<double>> tensors;
  for (const auto& tensor : kTemplate.tensors(shape)) tensors.push_back({.name = tensor.name, .value = {}});
  tensors[0].value = weight;
  tensors[1].value = bias;
  TemplateLayer<double, Cpu> layer(shape);
  LayerScratch<double> scratch;
  std::vector<Matrix<double>> out = {{}, {weight.rows, weight.columns}, {}};
  Matrix<double> evaluated;
  layer.forward(Cpu{1}, block, x, tensors, {}, out[0]);
  layer.backward(Cpu{1}, block, x, tensors, dz, scratch, std::span(out).subspan(1, 1), &out[2]);
  layer.evaluate(Cpu{1}, block, x, tensors, scratch, evaluated);
  EXPECT_EQ(evaluated.data, out[0].data);
  return out;
}

/// a, with b added to its first rows.
Matrix<double> plus(Matrix<double> a, const Matrix<double>& b) {
  for (std::size_t e = 0; e < b.data.size(); ++e) a.data[e] += b.data[e];
  return a;
}

/// The formulas of gcn.inl.hpp.
std::vector<Matrix<double>> gcn_by_eigen(const Block& block, const std::vector<Matrix<double>>& in) {
  const auto &x = in[0], &weight = in[2], &bias = in[3], &dz = in[4];
  const auto aggregate = product_by_eigen(block, x);
  return {
      plus(product_by_eigen(aggregate, weight), product_by_eigen(filled_matrix(block.rows, 1, 1.0), bias)),
      product_by_eigen(transposed(aggregate), dz),
      product_by_eigen(transposed_product_by_eigen(block, dz), transposed(weight))};
}

/// The formulas of sage.inl.hpp: those of GCN, and what the destinations' own rows add.
std::vector<Matrix<double>> sage_by_eigen(const Block& block, const std::vector<Matrix<double>>& in) {
  const auto &x = in[0], &self = in[1], &dz = in[4];
  const auto of_neighbours = gcn_by_eigen(block, in);
  Matrix<double> destinations(block.rows, x.columns);
  std::copy_n(x.data.begin(), destinations.data.size(), destinations.data.begin());
  return {plus(of_neighbours[0], product_by_eigen(destinations, self)),
          product_by_eigen(transposed(destinations), dz), of_neighbours[1],
          plus(of_neighbours[2], product_by_eigen(dz, transposed(self)))};
}

void expect_near_results(const std::vector<Matrix<double>>& found,
                         const std::vector<Matrix<double>>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t k = 0; k < found.size(); ++k)
    EXPECT_LT(largest_difference(found[k], expected[k]), 1e-12) << "result " << k;
}

/// X, the weights of the destinations themselves and of neighbours, the bias, dZ.
std::vector<Matrix<double>> random_tensors(std::int64_t in, std::int64_t out, std::mt19937_64& random) {
  return {random_matrix<double>(50, in, random), random_matrix<double>(in, out, random),
          random_matrix<double>(in, out, random), random_matrix<double>(1, out, random),
          random_matrix<double>(20, out, random)};
}

TEST(Convolution, IsTheFormulaInBothOrders) {
  std::mt19937_64 random(test_seed(20));
  for (const std::int64_t in : {1, 5, 40})
    for (const std::int64_t out : {1, 7, 30}) {
      const Block block = random_minibatch({50, 20}, random)[0];
      const auto tensors = random_tensors(in, out, random);
      expect_near_results(template_results(block, tensors), gcn_by_eigen(block, tensors));
      for (const ProductOrder order : {ProductOrder::kAggregateFirst, ProductOrder::kMultiplyFirst}) {
        SCOPED_TRACE(testing::Message() << in << " x " << out << (order == ProductOrder::kAggregateFirst));
        expect_near_results(sage_results(block, order, tensors), sage_by_eigen(block, tensors));
        expect_near_results(gcn_results(block, transpose(block), order, tensors),
                            gcn_by_eigen(block, tensors));
      }
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
