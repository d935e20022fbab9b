// ranks: 1
// Laws: the gradients of a whole network are the derivatives of its loss (central finite
// differences in double agree to 2e-7 of the gradient's norm) and PyTorch's; neither forward nor
// backward depends on the number of threads; a row of evaluate_layer depends on the rows it needs
// only; nothing is allocated in the steady state.
#include "espalier/nn/network.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "dense/random_matrices.hpp"
#include "espalier/base/buffer.hpp"
#include "espalier/base/error.hpp"
#include "espalier/dense/spmm.hpp"
#include "espalier/nn/softmax_cross_entropy.hpp"
#include "mpi_test.hpp"
#include "nn/network_case.hpp"
#include "oracle/fixture.hpp"

namespace espalier {
namespace {

template <class T>
using Case = NetworkCase<T>;

struct Widths {
  std::int64_t inputs, hidden, classes;
};

TEST(Network, GradientsAreTheDerivativesOfTheLoss) {
  const std::uint64_t seed = test_seed(5);
  int multiply_first = 0, aggregate_first = 0;
  for (const std::string kind : {"sage", "gcn"})
    for (const std::string normalize : {"none", "batch", "layer"})
      for (const int layers : {1, 2, 3})
        // Widths shrinking and growing, frontiers growing little and much: both orders of
        // multiplication.
        for (const Widths w : {Widths{40, 6, 3}, Widths{5, 9, 7}})
          for (const std::vector<std::int64_t>& sizes :
               {std::vector<std::int64_t>{13, 12, 11, 9}, {60, 30, 14, 8}}) {
            const NetworkShape shape{kind, layers, w.inputs, w.hidden, w.classes, 0.4, 0.3, normalize};
            Case<double> c(shape, {sizes.end() - layers - 1, sizes.end()}, seed);
            for (int l = 1; l <= layers; ++l)
              ++(cheaper_order(c.blocks[static_cast<std::size_t>(l - 1)], c.network.input_width(l),
                               c.network.output_width(l), l > 1) == ProductOrder::kMultiplyFirst
                     ? multiply_first
                     : aggregate_first);
            const auto gradients = c.gradients();
            for (std::size_t k = 0; k < gradients.size(); ++k)
              EXPECT_LT(relative_error(c, c.network.parameters()[k].value, gradients[k]), 2e-7)
                  << kind << " " << normalize << " layers " << layers << " inputs " << w.inputs << " "
                  << c.network.parameters()[k].name << " seed " << seed;
          }
  EXPECT_GT(multiply_first, 10) << "both orders must have been tried";
  EXPECT_GT(aggregate_first, 10);
}

TEST(Network, AgreesWithPyTorch) {
  for (const auto& json : read_fixture("networks")) {
    const auto& shape = json.at("shape");
    const NetworkShape s{shape.at("kind"),
                         shape.at("layers"),
                         shape.at("inputs"),
                         shape.at("hidden"),
                         shape.at("classes"),
                         0,
                         0,
                         shape.at("normalize")};
    SCOPED_TRACE(s.kind + " " + s.normalize);
    Network<double> network(s, 1);
    for (auto& parameter : network.parameters())
      parameter.value = to_matrix<double>(json.at("parameters").at(parameter.name));
    EXPECT_EQ(network.parameters().size(), json.at("parameters").size());
    std::vector<Block> blocks;
    for (const auto& block : json.at("blocks")) blocks.push_back(to_block(block));
    const std::vector<BlockView<>> views(blocks.begin(), blocks.end());
    const auto input = to_matrix<double>(json.at("input"));
    const auto labels = json.at("labels").get<std::vector<std::int32_t>>();

    const auto& logits = network.forward(Cpu{1}, views, input, {});
    EXPECT_LT(largest_difference(logits, to_matrix<double>(json.at("logits"))), 1e-12);
    Matrix<double> dlogits;
    const double loss = softmax_cross_entropy<double>(Cpu{1}, logits, labels, 1.0, dlogits);
    EXPECT_NEAR(loss, json.at("loss").get<double>(), 1e-12 * loss);
    std::vector<Matrix<double>> gradients;
    network.backward(Cpu{1}, views, input, {}, dlogits, gradients);
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      const auto& name = network.parameters()[k].name;
      EXPECT_LT(largest_difference(gradients[k], to_matrix<double>(json.at("gradients").at(name))), 1e-11)
          << name;
    }
    network.update_running_statistics(network.batch_statistics());
    for (std::size_t k = 0; k < network.running_statistics().size(); ++k)
      EXPECT_LT(largest_difference(network.running_statistics()[k],
                                   to_matrix<double>(json.at("running_after").at(k))),
                1e-12);
    EXPECT_EQ(network.running_statistics().size(), json.at("running_after").size());
    Matrix<double> at = input, next;
    LayerScratch<double> scratch;
    for (int layer = 1; layer <= s.layers; ++layer, std::swap(at, next))
      network.evaluate_layer(Cpu{1}, layer, blocks[static_cast<std::size_t>(layer - 1)], at, scratch, next);
    EXPECT_LT(largest_difference(at, to_matrix<double>(json.at("evaluated"))), 1e-12);
  }
}

TEST(Network, ThreadsDoNotMatter) {
  for (const std::string kind : {"sage", "gcn"})
    for (const std::string normalize : {"batch", "layer"}) {
      const NetworkShape shape{kind, 2, 50, 33, 9, 0.5, 0.2, normalize};
      Case<float> c(shape, {3000, 1700, 900}, 3);
      const double loss = c.loss();
      const auto gradients = c.gradients();
      for (const int threads : {2, 3, 5}) {
        EXPECT_EQ(c.loss(threads), loss);
        const auto again = c.gradients(threads);
        for (std::size_t k = 0; k < gradients.size(); ++k) EXPECT_TRUE(same_bits(again[k], gradients[k]));
      }
    }
}

TEST(Network, PlacesOfBlocksInCommonArraysDoNotMatter) {
  for (const std::string kind : {"sage", "gcn"})
    for (const Widths w : {Widths{40, 6, 3}, Widths{5, 9, 7}}) {  // both orders of multiplication
      Case<float> c({kind, 2, w.inputs, w.hidden, w.classes, 0.5, 0.2, "batch"}, {600, 140, 80}, 3);
      const double loss = c.loss();
      const auto gradients = c.gradients();
      Matrix<float> own, in_common;
      LayerScratch<float> scratch;
      c.network.evaluate_layer(Cpu{1}, 1, c.blocks[0], c.input, scratch, own);
      const SharedBlock first(c.storage[0], 333), second(c.storage[1], 10000);
      c.blocks = {first.block, second.block};
      EXPECT_EQ(c.loss(), loss);
      const auto again = c.gradients();
      for (std::size_t k = 0; k < gradients.size(); ++k) EXPECT_TRUE(same_bits(again[k], gradients[k]));
      c.network.evaluate_layer(Cpu{1}, 1, c.blocks[0], c.input, scratch, in_common);
      EXPECT_TRUE(same_bits(in_common, own));
    }
}

TEST(Network, DropoutIsAFunctionOfThePass) {
  Case<float> c({"sage", 2, 8, 16, 5, 0.5, 0.5, "none"}, {40, 20, 10}, 6);
  const double loss = c.loss();
  EXPECT_EQ(c.loss(), loss);
  for (std::uint64_t Pass::*key : {&Pass::seed, &Pass::epoch, &Pass::batch}) {
    ++(c.pass.*key);
    EXPECT_NE(c.loss(), loss);
    --(c.pass.*key);
  }
  EXPECT_EQ(c.loss(), loss);
}

TEST(Network, EvaluationOfARowDependsOnTheRowsItNeeds) {
  std::mt19937_64 random(test_seed(12));
  for (const std::string kind : {"sage", "gcn"})
    for (const std::string normalize : {"none", "batch", "layer"})
      // The second is cheaper multiplied first as a whole and aggregated first row by row.
      for (const Widths w : {Widths{37, 21, 5}, Widths{64, 16, 5}, Widths{10, 48, 50}}) {
        Case<float> c({kind, 2, w.inputs, w.hidden, w.classes, 0.5, 0.5, normalize}, {150, 100, 90}, 4);
        c.network.forward(Cpu{1}, c.blocks, c.input, {});
        c.network.update_running_statistics(c.network.batch_statistics());
        for (const int layer : {1, 2}) {
          const BlockView<>& block = c.blocks[static_cast<std::size_t>(layer - 1)];
          const auto input = random_matrix<float>(block.columns, c.network.input_width(layer), random);
          Matrix<float> whole, alone;
          LayerScratch<float> scratch;
          c.network.evaluate_layer(Cpu{2}, layer, block, input, scratch, whole);
          for (std::int64_t i = 0; i < block.rows; ++i) {
            std::vector<std::int64_t> needed;
            const auto row = row_alone(block, i, needed);
            Matrix<float> part(row.block.columns, input.columns);
            for (std::int64_t k = 0; k < part.rows; ++k)
              std::copy_n(input.row(needed[static_cast<std::size_t>(k)]), input.columns, part.row(k));
            c.network.evaluate_layer(Cpu{1}, layer, row.view(), part, scratch, alone);
            EXPECT_TRUE(std::equal(alone.data.begin(), alone.data.end(), whole.row(i)))
                << kind << " " << normalize;
          }
        }
      }
}

TEST(Network, EvaluationIsTheForwardPassWithoutDropout) {
  for (const std::string kind : {"sage", "gcn"})
    for (const std::string normalize : {"none", "layer"}) {
      Case<double> c({kind, 3, 20, 9, 12, 0, 0, normalize}, {60, 40, 25, 12}, 9);
      const auto logits = c.network.forward(Cpu{1}, c.blocks, c.input, c.pass);
      Matrix<double> at = c.input, next;
      LayerScratch<double> scratch;
      for (int layer = 1; layer <= 3; ++layer, std::swap(at, next))
        c.network.evaluate_layer(Cpu{1}, layer, c.blocks[static_cast<std::size_t>(layer - 1)], at, scratch,
                                 next);
      EXPECT_LT(largest_difference(at, logits), 1e-12);
    }
}

TEST(Network, AnEmptyMinibatchHasNoLossAndNoGradient) {
  Case<float> c({"sage", 2, 6, 5, 4, 0.5, 0, "batch"}, {0, 0, 0}, 2);
  EXPECT_EQ(c.loss(), 0.0);
  for (const auto& gradient : c.gradients())
    for (const float x : gradient.data) EXPECT_EQ(x, 0.0f);
}

TEST(Network, InitialWeightsAreGlorotUniformAndKeyedBySeed) {
  const NetworkShape shape{"sage", 2, 300, 100, 7, 0, 0, "batch"};
  const Network<float> one(shape, 5), same(shape, 5), other(shape, 6);
  const auto& weight = one.parameters()[0].value;
  const double limit = std::sqrt(6.0 / 400);
  double sum = 0, squares = 0;
  for (const float x : weight.data) {
    EXPECT_LE(std::abs(x), limit);
    sum += x;
    squares += x * x;
  }
  const auto count = static_cast<double>(weight.data.size());
  EXPECT_NEAR(sum / count, 0, 4 * limit / std::sqrt(3 * count));
  EXPECT_NEAR(squares / count, limit * limit / 3, 0.02 * limit * limit);
  EXPECT_TRUE(same_bits(weight, same.parameters()[0].value));
  EXPECT_FALSE(same_bits(weight, other.parameters()[0].value));
  EXPECT_FALSE(same_bits(weight, one.parameters()[1].value)) << "self and neighbour weights are drawn apart";
  EXPECT_EQ(one.parameter_count(), 2 * 300 * 100 + 100 + 100 + 100 + 2 * 100 * 7 + 7);
}

TEST(Network, RefusesShapesThatMakeNoSense) {
  EXPECT_THROW(Network<float>({"sgae", 2, 4, 4, 4, 0, 0, "none"}, 1), UserError);
  EXPECT_THROW(Network<float>({"sage", 0, 4, 4, 4, 0, 0, "none"}, 1), UserError);
  EXPECT_THROW(Network<float>({"sage", 2, 4, 4, 4, 1.0, 0, "none"}, 1), UserError);
  EXPECT_THROW(Network<float>({"sage", 2, 4, 4, 4, 0, 0, "group"}, 1), UserError);
}

TEST(Network, PassesAllocateNothingOnceTheLargestMinibatchHasPassed) {
  for (const std::string kind : {"sage", "gcn"})
    for (const std::string normalize : {"none", "batch", "layer"})
      for (const int threads : {1, 2}) {
        SCOPED_TRACE(kind + " " + normalize + ", threads " + std::to_string(threads));
        const NetworkShape shape{kind, 3, 40, 70, 9, 0.4, 0.3, normalize};
        Case<float> large(shape, {9000, 4000, 1500, 700}, 1);
        Case<float> small(shape, {5000, 3000, 1000, 300}, 2);
        Matrix<float> dlogits;
        std::vector<Matrix<float>> gradients;
        const auto step = [&](const Case<float>& c) {
          const auto& logits = large.network.forward(Cpu{threads}, c.blocks, c.input, c.pass);
          softmax_cross_entropy<float>(Cpu{threads}, logits, c.labels, 1.0, dlogits);
          large.network.backward(Cpu{threads}, c.blocks, c.input, c.pass, dlogits, gradients);
        };
        for (int k = 0; k < 2; ++k) step(large);
        const auto before = buffer_allocations();
        step(small);
        step(large);
        EXPECT_EQ(buffer_allocations(), before);
      }
}

}  // namespace
}  // namespace espalier
