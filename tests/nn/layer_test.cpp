// ranks: 1
// Laws of every kind of layer with all that may stand around it: gradients of a whole network, of
// its input too, are the derivatives of its loss (central finite differences in double); neither
// forward nor backward depends on the number of threads; a row of an evaluation depends on the rows
// it needs only, and evaluation is the forward pass without dropout; what is said of a kind before
// it is made is what it then has.
#include "espalier/nn/layer.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "espalier/base/error.hpp"
#include "espalier/nn/network.hpp"
#include "espalier/nn/softmax_cross_entropy.hpp"
#include "mpi_test.hpp"
#include "nn/network_case.hpp"

namespace espalier {
namespace {

/// One shape for each way of a layer, small; then what may stand around it.
std::vector<NetworkShape> shapes(const std::vector<double>& rates = {0, 0.4}) {
  std::vector<NetworkShape> all;
  for (const double rate : rates)
    for (const char* kind : {"sage", "gcn", "gat", "gin"}) {
      NetworkShape shape{.kind = kind,
                         .layers = 2,
                         .inputs = 7,
                         .hidden = 6,
                         .classes = 4,
                         .dropout = rate,
                         .input_dropout = rate};
      const bool attends = shape.kind == "gat";
      if (attends) shape.heads = 3, shape.output_heads = 2, shape.attention_dropout = rate;
      all.push_back(shape);
      if (shape.kind == "sage") {
        all.push_back(shape);
        all.back().aggregator = "max";
      }
      for (const char* normalize : {"batch", "layer"}) {
        all.push_back(shape);
        all.back().normalize = normalize;
        all.back().residual = true;
      }
      for (const char* jumping : {"concat", "max"}) {
        all.push_back(shape);
        all.back().jumping = jumping;
        all.back().residual = true;
        all.back().layers = 3;
      }
      all.push_back(shape);
      all.back().activation = "elu";
      all.back().hidden = 9;
      all.back().layers = 3;
    }
  return all;
}

std::string in_words(const NetworkShape& s) {
  return fmt::format("{} {} layers {} dropout {} normalize {} activation {} residual {} jumping {}", s.kind,
                     s.aggregator, s.layers, s.dropout, s.normalize, s.activation, s.residual, s.jumping);
}

std::vector<std::int64_t> frontiers_of(const NetworkShape& shape, std::vector<std::int64_t> sizes) {
  return {sizes.end() - shape.layers - 1, sizes.end()};
}

TEST(Layer, GradientsAreTheDerivativesOfTheLoss) {
  const std::uint64_t seed = test_seed(7);
  for (const auto& shape : shapes())
    for (const std::vector<std::int64_t>& sizes :
         {std::vector<std::int64_t>{13, 12, 11, 9}, std::vector<std::int64_t>{40, 20, 9, 5}}) {
      NetworkCase<double> c(shape, frontiers_of(shape, sizes), seed);
      Matrix<double> dinput;
      const auto gradients = c.gradients(1, &dinput);
      for (std::size_t k = 0; k < gradients.size(); ++k)
        EXPECT_LT(relative_error(c, c.network.parameters()[k].value, gradients[k]), 5e-7)
            << in_words(shape) << " " << c.network.parameters()[k].name << " seed " << seed;
      EXPECT_LT(relative_error(c, c.input, dinput), 5e-7) << in_words(shape) << " input, seed " << seed;
    }
}

TEST(Layer, ThreadsDoNotMatter) {
  for (auto shape : shapes({0.5})) {
    shape.inputs = 40;
    shape.hidden = 36;
    NetworkCase<float> c(shape, frontiers_of(shape, {5000, 3000, 1700, 900}), 3);
    const double loss = c.loss();
    const auto gradients = c.gradients();
    for (const int threads : {2, 5}) {
      EXPECT_EQ(c.loss(threads), loss) << in_words(shape);
      const auto again = c.gradients(threads);
      for (std::size_t k = 0; k < gradients.size(); ++k)
        EXPECT_TRUE(same_bits(again[k], gradients[k])) << in_words(shape);
    }
  }
}

TEST(Layer, EvaluationOfARowDependsOnTheRowsItNeeds) {
  std::mt19937_64 random(test_seed(12));
  for (auto shape : shapes({0.5})) {
    shape.inputs = 37;
    shape.hidden = 18;
    NetworkCase<float> c(shape, frontiers_of(shape, {200, 150, 100, 90}), 4);
    c.network.forward(Cpu{1}, c.blocks, c.input, {});
    c.network.update_running_statistics(c.network.batch_statistics());
    for (int layer = 1; layer <= shape.layers; ++layer) {
      const BlockView<>& block = c.blocks[static_cast<std::size_t>(layer - 1)];
      const auto input = random_matrix<float>(block.columns, c.network.input_width(layer), random);
      Matrix<float> whole, alone;
      LayerScratch<float> scratch;
      c.network.evaluate_layer(Cpu{2}, layer, block, input, scratch, whole);
      for (std::int64_t i = 0; i < block.rows; ++i) {
        std::vector<std::int64_t> needed;
        const Block row = row_alone(block, i, needed);
        Matrix<float> part(row.columns, input.columns);
        for (std::int64_t k = 0; k < row.columns; ++k)
          std::copy_n(input.row(needed[static_cast<std::size_t>(k)]), input.columns, part.row(k));
        c.network.evaluate_layer(Cpu{1}, layer, row, part, scratch, alone);
        ASSERT_TRUE(std::equal(alone.data.begin(), alone.data.end(), whole.row(i)))
            << in_words(shape) << " layer " << layer << " row " << i;
      }
    }
  }
}

TEST(Layer, EvaluationIsTheForwardPassWithoutDropout) {
  for (const auto& shape : shapes({0})) {
    if (shape.normalize == "batch") continue;  // of the minibatch here, of all steps there
    NetworkCase<double> c(shape, frontiers_of(shape, {60, 40, 25, 12}), 9);
    const auto logits = c.network.forward(Cpu{1}, c.blocks, c.input, c.pass);
    Matrix<double> at = c.input, next, jumped;
    LayerScratch<double> scratch;
    Buffer<std::int32_t> winners;
    if (c.network.jumps()) jumped.resize(12, c.network.input_width(c.network.stages()));
    for (int layer = 1; layer <= shape.layers; ++layer, std::swap(at, next)) {
      c.network.evaluate_layer(Cpu{1}, layer, c.blocks[static_cast<std::size_t>(layer - 1)], at, scratch,
                               next);
      if (c.network.jumps())
        c.network.take_up_layer(Cpu{1}, layer, MatrixView<double>(next).first_rows(12), winners, jumped);
    }
    if (c.network.jumps()) c.network.evaluate_output(Cpu{1}, jumped, at);
    EXPECT_LT(largest_difference(at, logits), 1e-12) << in_words(shape);
  }
}

TEST(Layer, WhatIsSaidOfAKindIsWhatItHas) {
  for (const auto& shape : shapes({0.5})) {
    NetworkCase<float> c(shape, frontiers_of(shape, {60, 40, 25, 12}), 9);
    const auto size = network_size(shape);
    EXPECT_EQ(static_cast<std::int64_t>(size.parameters), c.network.parameter_count()) << in_words(shape);
    EXPECT_EQ(size.tensors, std::ssize(c.network.parameters())) << in_words(shape);
    EXPECT_EQ(size.statistic_tensors, std::ssize(c.network.running_statistics())) << in_words(shape);
  }
}

TEST(Layer, AttentionDropsWeightsOfItsOwnMask) {
  NetworkShape shape{.kind = "gat", .layers = 1, .inputs = 5, .hidden = 1, .classes = 3, .output_heads = 2};
  NetworkCase<double> whole(shape, {400, 90}, 5);
  shape.attention_dropout = 0.5;
  NetworkCase<double> dropped(shape, {400, 90}, 5);
  EXPECT_NE(whole.loss(), dropped.loss());
  const double loss = dropped.loss();
  ++dropped.pass.batch;
  EXPECT_NE(dropped.loss(), loss);
  // Expectations stay: over many masks the mean of the logits is that without.
  Matrix<double> mean(90, 3);
  std::fill(mean.data.begin(), mean.data.end(), 0.0);
  constexpr int kMasks = 4000;
  for (int k = 0; k < kMasks; ++k) {
    ++dropped.pass.batch;
    const auto& logits = dropped.network.forward(Cpu{1}, dropped.blocks, dropped.input, dropped.pass);
    for (std::size_t e = 0; e < mean.data.size(); ++e) mean.data[e] += logits.data[e] / kMasks;
  }
  const auto& expected = whole.network.forward(Cpu{1}, whole.blocks, whole.input, whole.pass);
  double largest = 0;
  for (const double x : expected.data) largest = std::max(largest, std::abs(x));
  EXPECT_LT(largest_difference(mean, expected), 0.1 * largest);
}

TEST(Layer, RefusesShapesThatMakeNoSense) {
  const auto refused = [](NetworkShape shape, const char* word) {
    try {
      check_shape(shape);
      ADD_FAILURE() << "not refused: " << in_words(shape);
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  };
  NetworkShape shape{.kind = "gat", .layers = 2, .inputs = 5, .hidden = 8, .classes = 3};
  check_shape(shape);
  shape.heads = 3;
  refused(shape, "multiple of model.heads");
  shape = {.kind = "gta", .layers = 2, .inputs = 5, .hidden = 8, .classes = 3};
  refused(shape, "gat");
  shape.kind = "sage";
  shape.aggregator = "median";
  refused(shape, "aggregator");
  shape.aggregator = "max";
  shape.jumping = "lstm";
  refused(shape, "jumping");
  shape.jumping = "none";
  shape.activation = "tanh";
  refused(shape, "activation");
}

}  // namespace
}  // namespace espalier
