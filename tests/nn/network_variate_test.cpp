// Laws of a network with something added to its aggregates (control variates): where nothing is
// added, logits and gradients are those without, bit for bit; what is added reaches the logits by
// way of the aggregate; gradients are those of the loss with it fixed, whichever order of products
// the layer would have taken; and rows before dropout are kept.
#include <gtest/gtest.h>

#include "espalier/dense/gemm.hpp"
#include "layer_shapes.hpp"
#include "network_case.hpp"

namespace espalier {
namespace {

std::vector<NetworkShape> variate_shapes(const std::vector<double>& rates) {
  auto all = layer_shapes(rates);
  std::erase_if(all, [](const NetworkShape& s) {
    return !layer_kind_of(s.kind).takes_variates || s.aggregator != "mean" || s.layers < 2 ||
           s.normalize == "batch" || s.jumping != "none";
  });
  // Where a layer multiplies first by itself: shrinking width, few more sources than rows.
  for (const char* kind : {"sage", "gcn"})
    all.push_back({.kind = kind, .layers = 3, .inputs = 7, .hidden = 12, .classes = 2, .dropout = rates[0]});
  return all;
}

template <class T>
struct VariateCase {
  NetworkCase<T> c;
  std::vector<Matrix<T>> matrices;
  AddedAggregates<T> added;

  VariateCase(const NetworkShape& shape, bool something)
      : c(shape, frontiers_of(shape, {36, 32, 28, 24}), 7), matrices(static_cast<std::size_t>(shape.layers)) {
    std::mt19937_64 random(9);
    for (int layer = 2; something && layer <= shape.layers; ++layer)
      matrices[layer - 1] = random_matrix<T>(c.blocks[layer - 1].rows, c.network.input_width(layer), random);
    added = {matrices};
  }
  const Matrix<T>& logits() {
    return c.network.forward(Cpu{1}, c.blocks, c.input, c.pass, InputForm::kRows, nullptr, &added);
  }
  double loss() {
    Matrix<T> unused;
    return softmax_cross_entropy<T>(Cpu{1}, logits(), c.labels, 1.0, unused);
  }
  std::vector<Matrix<T>> gradients() {
    Matrix<T> dlogits;
    std::vector<Matrix<T>> result;
    softmax_cross_entropy<T>(Cpu{1}, logits(), c.labels, 1.0, dlogits);
    c.network.backward(Cpu{1}, c.blocks, c.input, c.pass, dlogits, result);
    return result;
  }
};

TEST(NetworkVariate, WithNothingAddedBitsAreThoseWithout) {
  for (const auto& shape : variate_shapes({0.3, 0})) {
    VariateCase<float> of(shape, false);
    const auto expected_logits = of.c.network.forward(Cpu{1}, of.c.blocks, of.c.input, of.c.pass);
    const auto expected = of.c.gradients();
    EXPECT_EQ(largest_difference(of.logits(), expected_logits), 0) << in_words(shape);
    const auto gradients = of.gradients();
    for (std::size_t k = 0; k < expected.size(); ++k)
      EXPECT_EQ(largest_difference(gradients[k], expected[k]), 0) << in_words(shape) << " gradient " << k;
  }
}

// Of the last layer: Z = .. + (B H + R) W_neighbour, so logits grow by R W_neighbour.
TEST(NetworkVariate, WhatIsAddedGoesTheWayOfTheAggregate) {
  for (const auto& shape : variate_shapes({0.3})) {
    VariateCase<double> of(shape, true);
    for (int layer = 2; layer < shape.layers; ++layer) of.matrices[layer - 1].resize(0, 0);
    auto expected = of.c.network.forward(Cpu{1}, of.c.blocks, of.c.input, of.c.pass);
    const std::string name =
        fmt::format("layer{}.{}", shape.layers, shape.kind == "sage" ? "neighbour" : "weight");
    const auto weight = std::ranges::find(of.c.network.parameters(), name, &Parameter<double>::name);
    ASSERT_NE(weight, of.c.network.parameters().end());
    gemm<double>(Cpu{1}, of.matrices.back(), weight->value, expected, Update::kAccumulate);
    EXPECT_LT(largest_difference(of.logits(), expected), 1e-13) << in_words(shape);
  }
}

TEST(NetworkVariate, GradientsAreThoseOfTheLossWithWhatIsAddedFixed) {
  int multiply_first = 0;
  for (const auto& shape : variate_shapes({0, 0.3})) {
    VariateCase<double> of(shape, true);
    for (int layer = 2; layer <= shape.layers; ++layer)
      multiply_first += cheaper_order(of.c.blocks[layer - 1], of.c.network.input_width(layer),
                                      of.c.network.output_width(layer), true) == ProductOrder::kMultiplyFirst;
    const auto gradients = of.gradients();
    constexpr double kStep = 1e-6;
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      auto& data = of.c.network.parameters()[k].value.data;
      double difference = 0, norm = 0;
      for (std::size_t e = 0; e < data.size(); ++e) {
        const double kept = data[e];
        data[e] = kept + kStep;
        const double above = of.loss();
        data[e] = kept - kStep;
        const double numeric = (above - of.loss()) / (2 * kStep);
        data[e] = kept;
        difference += std::pow(numeric - gradients[k].data[e], 2);
        norm += numeric * numeric;
      }
      EXPECT_LT(std::sqrt(difference) / std::max(std::sqrt(norm), 0.1), 2e-6)
          << in_words(shape) << " " << of.c.network.parameters()[k].name;
    }
  }
  EXPECT_GT(multiply_first, 0) << "layers that would multiply first are tried, too";
}

TEST(NetworkVariate, RowsBeforeDropoutAreKept) {
  for (auto shape : variate_shapes({0.5})) {
    shape.input_dropout = 0;
    VariateCase<float> of(shape, true);
    of.logits();
    const auto first = of.c.network.computed_rows(1);
    shape.dropout = 0;
    VariateCase<float> without(shape, true);
    without.logits();
    EXPECT_EQ(largest_difference(first, without.c.network.computed_rows(1)), 0) << in_words(shape);
  }
}

}  // namespace
}  // namespace espalier
