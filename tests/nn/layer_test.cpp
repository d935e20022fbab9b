// ranks: 1
// Laws of every kind of layer with all that may stand around it: gradients of a whole network, of
// its input too, are the derivatives of its loss (central finite differences in double); neither
// forward nor backward depends on the number of threads; a row of an evaluation depends on the rows
// it needs only, and evaluation is the forward pass without dropout; the running statistics of a
// step are those of all its rows, and one row has no variance; what is said of a kind before it is
// made is what it then has; nothing is allocated in the steady state; where blocks lie in common
// arrays does not matter; NaN shows in all that it influences; weights begin uniform by Glorot's
// law, keyed by the seed.
#include "espalier/nn/layer.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "../../src/nn/segment_products.hpp"

#include "espalier/base/buffer.hpp"
#include "espalier/base/error.hpp"
#include "espalier/dense/gemm.hpp"
#include "espalier/dense/spmm.hpp"
#include "espalier/nn/cross_entropy.hpp"
#include "espalier/nn/edge_softmax.hpp"
#include "espalier/nn/network.hpp"
#include "mpi_test.hpp"
#include "nn/layer_shapes.hpp"
#include "nn/network_case.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

void expect_derivatives(const NetworkShape& shape, const std::vector<std::int64_t>& sizes, bool of_input,
                        double tolerance) {
  const std::uint64_t seed = test_seed(7);
  NetworkCase<double> c(shape, frontiers_of(shape, sizes), seed);
  Matrix<double> dinput;
  const auto gradients = c.gradients(1, of_input ? &dinput : nullptr);
  const auto loss = [&] { return c.loss(); };
  for (std::size_t k = 0; k < gradients.size(); ++k)
    EXPECT_LT(relative_error(loss, c.network.parameters()[k].value, gradients[k]), tolerance)
        << in_words(shape) << " " << c.network.parameters()[k].name << " seed " << seed;
  if (of_input)
    EXPECT_LT(relative_error(loss, c.input, dinput), tolerance) << in_words(shape) << " input, seed " << seed;
}

TEST(Layer, GradientsAreTheDerivativesOfTheLoss) {
  const std::vector<std::int64_t> sizes[] = {{13, 12, 11, 9}, {26, 17, 9, 5}};
  const auto shapes = layer_shapes({0, 0.4});
  // The first half has no dropout, the second is the same with it.
  EXPECT_EQ(shapes.size() / 2 % 2, 1u) << "so that each layer has both sizes";
  for (std::size_t k = 0; k < shapes.size(); ++k) expect_derivatives(shapes[k], sizes[k % 2], true, 5e-7);
}

TEST(Layer, LongGradientsOfEverySizeAreTheDerivatives) {
  for (const auto& shape : layer_shapes({0, 0.4}))
    for (const std::vector<std::int64_t>& sizes :
         {std::vector<std::int64_t>{13, 12, 11, 9}, std::vector<std::int64_t>{40, 20, 9, 5}})
      expect_derivatives(shape, sizes, true, 5e-7);
}

TEST(Layer, GradientsOfConvolutionsAreTheDerivativesInBothOrders) {
  int multiply_first = 0, aggregate_first = 0;
  for (const auto& shape : convolution_shapes({1, 2, 3}, {{40, 6, 3}, {5, 9, 7}}, 0.4, 0.3))
    for (const std::vector<std::int64_t>& sizes :
         {std::vector<std::int64_t>{13, 12, 11, 9}, {60, 30, 14, 8}}) {
      const NetworkCase<double> c(shape, frontiers_of(shape, sizes), 1);
      for (int l = 1; l <= shape.layers; ++l)
        ++(cheaper_order(c.blocks[static_cast<std::size_t>(l - 1)], c.network.input_width(l),
                         c.network.output_width(l), l > 1) == ProductOrder::kMultiplyFirst
               ? multiply_first
               : aggregate_first);
      expect_derivatives(shape, sizes, false, 2e-7);
    }
  EXPECT_GT(multiply_first, 10) << "both orders must have been tried";
  EXPECT_GT(aggregate_first, 10);
}

TEST(Layer, ThreadsDoNotMatter) {
  auto shapes = layer_shapes({0.5});
  for (auto& shape : shapes) shape.inputs = 40, shape.hidden = 36;
  std::ranges::move(convolution_shapes({2}, {{50, 33, 9}}, 0.5, 0.2), std::back_inserter(shapes));
  for (const auto& shape : shapes) {
    NetworkCase<float> c(shape, frontiers_of(shape, {2000, 1300, 700, 400}), 3);
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

// A sage of two layers without edges, whose Z[1] is X W + b: Z of each minibatch, by hand.
Matrix<double> rows_by_hand(const Network<double>& network, const Matrix<double>& x) {
  Matrix<double> z(x.rows, network.shape().hidden);
  const auto tensor = [&](const char* name) -> const Matrix<double>& {
    return std::ranges::find(network.parameters(), name, &Parameter<double>::name)->value;
  };
  for (std::int64_t i = 0; i < z.rows; ++i)
    for (std::int64_t j = 0; j < z.columns; ++j) {
      z.row(i)[j] = tensor("layer1.bias").row(0)[j];
      for (std::int64_t k = 0; k < x.columns; ++k)
        z.row(i)[j] += x.row(i)[k] * tensor("layer1.self").row(k)[j];
    }
  return z;
}

// One step after another, each of minibatches of so many rows. The mean of a step is that of all
// its rows, the variance all squares about the means of their minibatches over what these were
// divided by; minibatches of one row alone leave it.
TEST(Layer, RunningStatisticsCountEachMinibatchByItsRows) {
  const std::uint64_t seed = test_seed(31);
  std::mt19937_64 random(seed);
  const NetworkShape shape{"sage", 2, 5, 4, 3, 0, 0, "batch"};
  Network<double> network(shape, seed);
  std::vector<double> mean(4, 0), variance(4, 1);
  for (const std::vector<std::int64_t>& step :
       {std::vector<std::int64_t>{256, 1}, {1}, {1, 1, 1}, {2, 7}, {1, 40, 3}, {}, {6}}) {
    std::vector<Matrix<double>> weighted, sums = network.running_statistics();
    sums.emplace_back(1, 2);
    for (auto& sum : sums) std::ranges::fill(sum.data, 0.0);
    std::vector<double> sum_of_rows(4, 0), squares(4, 0);
    std::int64_t all = 0;
    for (const auto rows : step) {
      Csr<std::int32_t> edgeless;
      edgeless.rows = edgeless.columns = rows;
      edgeless.indptr.assign(static_cast<std::size_t>(rows) + 1, 0);
      const std::vector<BlockView<>> blocks(2, BlockView<>(edgeless));
      auto x = random_matrix<double>(rows, 5, random);
      for (auto& value : x.data) value = 3 + 10 * value;
      network.forward(Cpu{1}, blocks, x, {});
      network.weigh_statistics(Cpu{1}, weighted);
      for (std::size_t k = 0; k < sums.size(); ++k)
        for (std::size_t e = 0; e < sums[k].data.size(); ++e) sums[k].data[e] += weighted[k].data[e];
      const auto z = rows_by_hand(network, x);
      all += rows;
      for (std::int64_t j = 0; j < 4; ++j) {
        double of_batch = 0;
        for (std::int64_t i = 0; i < rows; ++i) of_batch += z.row(i)[j];
        sum_of_rows[j] += of_batch;
        for (std::int64_t i = 0; i < rows; ++i)
          squares[j] += std::pow(z.row(i)[j] - of_batch / static_cast<double>(rows), 2);
      }
    }
    const auto before = network.running_statistics();
    network.update_running_statistics(Cpu{1}, sums);
    const auto freedom = all - std::ssize(step);
    for (std::size_t j = 0; j < 4; ++j) {
      if (all > 0) mean[j] = 0.9 * mean[j] + 0.1 * sum_of_rows[j] / static_cast<double>(all);
      if (freedom > 0) variance[j] = 0.9 * variance[j] + 0.1 * squares[j] / static_cast<double>(freedom);
      EXPECT_NEAR(network.running_statistics()[0].data[j], mean[j], 1e-11 * 100);
      EXPECT_NEAR(network.running_statistics()[1].data[j], variance[j], 1e-11 * 100);
    }
    EXPECT_EQ(same_bits(before[0], network.running_statistics()[0]), all == 0);
    EXPECT_EQ(same_bits(before[1], network.running_statistics()[1]), freedom == 0);
  }
}

// What PyTorch refuses: x^ is 0, so only the shift is left, and nothing goes back.
TEST(Layer, AMinibatchOfOneRowIsNormalisedToTheShift) {
  NetworkCase<double> c({"sage", 2, 5, 4, 3, 0, 0, "batch"}, {1, 1, 1}, test_seed(32));
  Matrix<double> dinput;
  const auto gradients = c.gradients(1, &dinput);
  const auto logits = c.network.forward(Cpu{1}, c.blocks, c.input, c.pass);
  for (auto& x : c.input.data) x = 7 - 2 * x;
  EXPECT_TRUE(same_bits(c.network.forward(Cpu{1}, c.blocks, c.input, c.pass), logits));
  for (const double d : dinput.data) EXPECT_EQ(d, 0);
  for (std::size_t k = 0; k < gradients.size(); ++k)
    for (const double d : gradients[k].data) EXPECT_TRUE(std::isfinite(d)) << c.network.parameters()[k].name;
}

TEST(Layer, EvaluationOfARowDependsOnTheRowsItNeeds) {
  std::mt19937_64 random(test_seed(12));
  auto shapes = layer_shapes({0.5});
  for (auto& shape : shapes) shape.inputs = 37, shape.hidden = 18;
  // The second is cheaper multiplied first as a whole and aggregated first row by row.
  std::ranges::move(convolution_shapes({2}, {{37, 21, 5}, {64, 16, 5}, {10, 48, 50}}, 0.5, 0.5),
                    std::back_inserter(shapes));
  for (const auto& shape : shapes) {
    NetworkCase<float> c(shape, frontiers_of(shape, {200, 150, 100, 90}), 4);
    c.network.forward(Cpu{1}, c.blocks, c.input, {});
    update_running_statistics(Cpu{1}, c.network);
    for (int layer = 1; layer <= shape.layers; ++layer) {
      const BlockView<>& block = c.blocks[static_cast<std::size_t>(layer - 1)];
      const auto places = places_with_rows(shape, layer, block);
      const auto input = random_matrix<float>(std::ssize(places), c.network.input_width(layer), random);
      Matrix<float> whole, alone;
      LayerScratch<float> scratch;
      c.network.evaluate_layer(Cpu{2}, layer, block, input, scratch, whole);
      for (std::int64_t i = 0; i < block.rows; ++i) {
        std::vector<std::int64_t> needed;
        const auto row = row_alone(block, i, needed);
        Matrix<float> part(0, input.columns);
        for (const auto place : needed) {
          const auto found = std::ranges::lower_bound(places, place);
          if (found == places.end() || *found != place) continue;
          const float* const from = input.row(found - places.begin());
          part.data.insert(part.data.end(), from, from + input.columns);
          ++part.rows;
        }
        c.network.evaluate_layer(Cpu{1}, layer, row.view(), part, scratch, alone);
        ASSERT_TRUE(std::equal(alone.data.begin(), alone.data.end(), whole.row(i)))
            << in_words(shape) << " layer " << layer << " row " << i;
      }
    }
  }
}

// More than are stacked at once: where one stack ends and the next begins does not matter.
TEST(Layer, RelationsOfManyRowsAreEvaluatedAStackAtATime) {
  for (const char* kind : {"rgat", "hgt"}) {
    const NetworkShape shape{
        .kind = kind, .layers = 1, .inputs = 7, .hidden = 1, .classes = 5, .output_heads = 2, .relations = 2};
    constexpr std::int64_t kRows = 3 * kStackedSegments<Cpu>;
    NetworkCase<float> c(shape, {kRows + 20, kRows}, 4);
    RelationSegments segments;
    find_segments(Cpu{1}, c.blocks[0], 2, segments);
    ASSERT_GT(segments.of(0).count, kStackedSegments<Cpu>);
    Matrix<float> whole, alone;
    LayerScratch<float> scratch;
    c.network.evaluate_layer(Cpu{2}, 1, c.blocks[0], c.input, scratch, whole);
    EXPECT_TRUE(same_bits(c.network.forward(Cpu{1}, c.blocks, c.input, c.pass), whole)) << kind;
    for (std::int64_t i = 0; i < kRows; i += 97) {
      std::vector<std::int64_t> needed;
      const auto row = row_alone(c.blocks[0], i, needed);
      Matrix<float> part(std::ssize(needed), 7);
      for (std::int64_t k = 0; k < part.rows; ++k)
        std::copy_n(c.input.row(needed[static_cast<std::size_t>(k)]), 7, part.row(k));
      c.network.evaluate_layer(Cpu{1}, 1, row.view(), part, scratch, alone);
      ASSERT_TRUE(std::equal(alone.data.begin(), alone.data.end(), whole.row(i))) << kind << " row " << i;
    }
  }
}

TEST(Layer, EvaluationIsTheForwardPassWithoutDropout) {
  auto shapes = layer_shapes({0});
  std::ranges::move(convolution_shapes({3}, {{20, 9, 12}}, 0, 0), std::back_inserter(shapes));
  for (const auto& shape : shapes) {
    if (shape.normalize == "batch") continue;  // of the minibatch here, of all steps there
    NetworkCase<double> c(shape, frontiers_of(shape, {60, 40, 25, 12}), 9);
    const auto logits = c.network.forward(Cpu{1}, c.blocks, c.input, c.pass);
    EXPECT_LT(largest_difference(evaluate(c.network, c.blocks, c.input), logits), 1e-12) << in_words(shape);
  }
}

TEST(Layer, WhatIsSaidOfAKindIsWhatItHas) {
  for (const auto& shape : layer_shapes({0.5})) {
    NetworkCase<float> c(shape, frontiers_of(shape, {60, 40, 25, 12}), 9);
    const auto size = network_size(shape);
    EXPECT_EQ(static_cast<std::int64_t>(size.parameters), c.network.parameter_count()) << in_words(shape);
    EXPECT_EQ(size.tensors, std::ssize(c.network.parameters())) << in_words(shape);
    EXPECT_EQ(size.statistic_tensors, std::ssize(c.network.running_statistics())) << in_words(shape);
    for (const auto& made : network_layers(shape)) {
      const auto& last = made.tensors[made.own_tensors - 1];
      EXPECT_EQ(std::string_view(last.name), "bias") << "what the network gives the sums of dZ to";
      EXPECT_EQ(last.rows, 1);
      EXPECT_EQ(last.columns, made.layer.out);
    }
  }
}

void expect_attention_drops_weights_of_its_own_mask(NetworkShape shape) {
  SCOPED_TRACE(shape.kind);
  NetworkCase<double> whole(shape, {400, 90}, 5);
  shape.attention_dropout = 0.5;
  NetworkCase<double> dropped(shape, {400, 90}, 5);
  EXPECT_NE(whole.loss(), dropped.loss());
  const double loss = dropped.loss();
  ++dropped.pass.batch;
  EXPECT_NE(dropped.loss(), loss);
  if (shape.kind == "hgt") return;  // what is summed goes through GELU
  // Expectations stay: over many masks the mean of the logits is that without.
  auto mean = filled_matrix(90, 3, 0.0);
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

// GAT's authors drop weights; those of R-GAT and HGT do not.
TEST(Layer, AutomaticDropoutOfAttentionIsThatOfTheSource) {
  ModelConfig model;
  model.dropout = 0.6;
  for (const auto& [kind, rate] : {std::pair{"gat", 0.6}, {"rgat", 0.0}, {"hgt", 0.0}}) {
    model.kind = kind;
    EXPECT_EQ(network_shape(model, 8, 4).attention_dropout, rate) << kind;
  }
  model.attention_dropout.value = 0.2;
  EXPECT_EQ(network_shape(model, 8, 4).attention_dropout, 0.2);
}

TEST(Layer, AttentionDropsWeightsOfItsOwnMask) {
  NetworkShape shape{.kind = "gat", .layers = 1, .inputs = 5, .hidden = 1, .classes = 3, .output_heads = 2};
  expect_attention_drops_weights_of_its_own_mask(shape);
  shape.relations = 3;
  for (const char* kind : {"rgat", "hgt"}) {
    shape.kind = kind;
    expect_attention_drops_weights_of_its_own_mask(shape);
  }
}

// Where every row names its own vertex, as GAT's softmax always has it, and the self term is 0.
TEST(Layer, RelationalAttentionOverOneRelationIsGat) {
  NetworkShape shape{.kind = "gat", .layers = 1, .inputs = 5, .hidden = 1, .classes = 3, .output_heads = 2};
  NetworkCase<double> gat(shape, {60, 25}, 8);
  auto& block = gat.storage[0];
  Block with_own;
  with_own.rows = block.rows, with_own.columns = block.columns;
  for (std::int64_t i = 0; i < block.rows; ++i) {
    std::vector<std::int32_t> named(block.row_indices(i).begin(), block.row_indices(i).end());
    std::erase(named, static_cast<std::int32_t>(i));
    named.push_back(static_cast<std::int32_t>(i));
    std::ranges::sort(named);
    with_own.indices.insert(with_own.indices.end(), named.begin(), named.end());
    with_own.indptr.push_back(with_own.entries());
  }
  block = with_own;
  gat.blocks.assign(gat.storage.begin(), gat.storage.end());
  shape.kind = "rgat";
  Network<double> rgat(shape, 8);
  std::ranges::fill(rgat.parameters()[0].value.data, 0.0);
  for (std::size_t k = 0; k < 4; ++k) {  // weight, source, target, bias
    const auto& from = gat.network.parameters()[k].value;
    auto& to = rgat.parameters()[k + 1].value;
    ASSERT_EQ(from.data.size(), to.data.size());
    if (k > 0)
      to.data = from.data;
    else  // a matrix for each head, one under the other
      for (std::int64_t i = 0; i < 2 * 5; ++i)
        for (std::int64_t c = 0; c < 3; ++c) to(i, c) = from(i % 5, i / 5 * 3 + c);
  }
  EXPECT_LT(largest_difference(rgat.forward(Cpu{1}, gat.blocks, gat.input, gat.pass),
                               gat.network.forward(Cpu{1}, gat.blocks, gat.input, gat.pass)),
            1e-12);
}

// The stream is part of the law of bits: attention's own purpose, the pass, the layer's number.
TEST(Layer, AttentionsMaskIsKeyedByThePassAndTheLayer) {
  const NetworkShape shape{.kind = "gat",
                           .layers = 2,
                           .inputs = 5,
                           .hidden = 6,
                           .classes = 3,
                           .heads = 2,
                           .output_heads = 1,
                           .attention_dropout = 0.5,
                           .jumping = "concat"};
  NetworkCase<double> c(shape, {60, 40, 20}, 5);
  const Cpu cpu{1};
  c.loss();
  Matrix<double> at = c.input, projected, source, target, weights, z, joined(20, 12), logits(20, 3);
  for (const int layer : {1, 2}) {
    const auto& block = c.storage[static_cast<std::size_t>(layer - 1)];
    const auto* const tensors = &c.network.parameters()[static_cast<std::size_t>(4 * (layer - 1))];
    projected.resize(at.rows, 6);
    source.resize(block.columns, 2);
    target.resize(block.rows, 2);
    gemm<double>(cpu, at, tensors[0].value, projected);
    head_scores<double>(cpu, projected, tensors[1].value, source);
    head_scores<double>(cpu, ConstMatrixView<double>(projected).first_rows(block.rows), tensors[2].value,
                        target);
    const RandomStream mask{
        c.pass.seed, Purpose::kAttention, c.pass.epoch, c.pass.batch, static_cast<std::uint64_t>(layer), 0};
    edge_softmax<double>(cpu, block, source, target, nullptr, mask, 0.5, weights);
    z.resize(block.rows, 6);
    fill_rows<double>(cpu, tensors[3].value, z);
    attend<double>(cpu, block, weights, 0.5, projected, z, Update::kAccumulate);
    activate<double>(cpu, Activation::kRelu, {}, 0, z);
    place_columns<double>(cpu, ConstMatrixView<double>(z).first_rows(20), 6 * (layer - 1), joined);
    at = z;
  }
  gemm_plus_row<double>(cpu, c.network.parameters()[9].value, joined, c.network.parameters()[8].value,
                        logits);
  EXPECT_TRUE(same_bits(c.network.forward(cpu, c.blocks, c.input, c.pass), logits));
}

// A feature that lowers an entry's score without end takes the entry away: the logits are those of
// blocks without it. The first entry of a relation in a row stays, as a softmax over nothing but
// such entries would weigh them alike.
TEST(Layer, FeaturesOfEdgesTakeEntriesAway) {
  for (auto shape : layer_shapes({0.0})) {
    if (shape.edge_features == 0) continue;
    shape.edge_features = 1;
    NetworkCase<double> c(shape, frontiers_of(shape, {600, 300, 140, 80}), 4);
    for (auto& parameter : c.network.parameters())
      if (parameter.name.ends_with(".edge")) std::ranges::fill(parameter.value.data, -1e6);
    std::vector<Block> fewer(c.storage.size());
    std::vector<Buffer<std::uint8_t>> relations(c.storage.size());
    std::vector<std::vector<std::int32_t>> entries(c.storage.size());
    std::vector<std::vector<float>> rows(c.storage.size());
    std::int64_t taken = 0;
    auto without = c.blocks;
    for (std::size_t l = 0; l < c.blocks.size(); ++l) {
      auto& block = c.blocks[l];
      fewer[l].rows = block.rows;
      fewer[l].columns = block.columns;
      const auto relation = [&](std::int64_t e) {
        return block.relations == nullptr ? 0 : block.relations[e];
      };
      for (std::int64_t i = 0; i < block.rows; ++i) {
        for (auto e = block.row_begin(i); e < block.row_end(i); ++e) {
          const bool first = e == block.row_begin(i) || relation(e) != relation(e - 1);
          const bool goes = !first && (i + e) % 2 == 0;
          taken += goes;
          entries[l].push_back(static_cast<std::int32_t>(e));
          rows[l].push_back(goes ? 1.0f : 0.0f);
          if (goes) continue;
          fewer[l].indices.push_back(block.indices[e]);
          relations[l].push_back(static_cast<std::uint8_t>(relation(e)));
        }
        fewer[l].indptr.push_back(fewer[l].entries());
      }
      block.edges = {std::ssize(entries[l]), 1, entries[l].data(), rows[l].data()};
      without[l] = fewer[l];
      without[l].runs = block.runs;
      without[l].relations = {block.has_relations(), relations[l]};
    }
    EXPECT_GT(taken, 30);
    const auto logits = c.network.forward(Cpu{1}, c.blocks, c.input, c.pass);
    const auto expected = c.network.forward(Cpu{1}, without, c.input, c.pass);
    EXPECT_LT(largest_difference(logits, expected), 1e-12) << in_words(shape);
  }
}

TEST(Layer, PlacesOfBlocksInCommonArraysDoNotMatter) {
  auto shapes = layer_shapes({0.5});
  std::ranges::move(convolution_shapes({2}, {{40, 6, 3}, {5, 9, 7}}, 0.5, 0.2), std::back_inserter(shapes));
  for (const auto& shape : shapes) {
    NetworkCase<float> c(shape, frontiers_of(shape, {300, 140, 80, 50}), 3);
    const double loss = c.loss();
    const auto gradients = c.gradients();
    Matrix<float> own, in_common;
    LayerScratch<float> scratch;
    c.network.evaluate_layer(Cpu{1}, 1, c.blocks[0], c.input, scratch, own);
    std::vector<SharedBlock> shared;
    std::vector<Buffer<std::uint8_t>> relations(c.storage.size());
    for (std::size_t l = 0; l < c.storage.size(); ++l) {
      const auto before = 333 + 10 * static_cast<std::int64_t>(l);
      const auto shown = c.blocks[l];
      c.blocks[l] = shared.emplace_back(c.storage[l], before).block;
      c.blocks[l].runs = shown.runs;
      c.blocks[l].edges = shown.edges;
      if (shape.relations == 1) continue;
      relations[l] = behind(before, c.beside.relations[l]);
      c.blocks[l].relations = Beside<const std::uint8_t>(relations[l]);
    }
    EXPECT_EQ(c.loss(), loss) << in_words(shape);
    const auto again = c.gradients();
    for (std::size_t k = 0; k < gradients.size(); ++k)
      EXPECT_TRUE(same_bits(again[k], gradients[k])) << in_words(shape);
    c.network.evaluate_layer(Cpu{1}, 1, c.blocks[0], c.input, scratch, in_common);
    EXPECT_TRUE(same_bits(in_common, own)) << in_words(shape);
  }
}

TEST(Layer, PassesAllocateNothingOnceTheLargestMinibatchHasPassed) {
  auto shapes = layer_shapes({0.4});
  std::ranges::move(convolution_shapes({3}, {{40, 70, 9}}, 0.4, 0.3), std::back_inserter(shapes));
  for (const auto& shape : shapes)
    for (const int threads : {1, 2}) {
      SCOPED_TRACE(in_words(shape) + ", threads " + std::to_string(threads));
      NetworkCase<float> large(shape, frontiers_of(shape, {1600, 1000, 600, 280}), 1);
      NetworkCase<float> small(shape, frontiers_of(shape, {1200, 800, 400, 120}), 2);
      Matrix<float> dlogits, dinput;
      std::vector<Matrix<float>> gradients;
      const auto step = [&](const NetworkCase<float>& c) {
        const auto& logits = large.network.forward(Cpu{threads}, c.blocks, c.input, c.pass);
        softmax_cross_entropy<float>(Cpu{threads}, logits, c.labels, 1.0, dlogits);
        large.network.backward(Cpu{threads}, c.blocks, c.input, c.pass, dlogits, gradients, &dinput);
      };
      for (int k = 0; k < 2; ++k) step(large);
      const auto before = buffer_allocations();
      step(small);
      step(large);
      EXPECT_EQ(buffer_allocations(), before);
    }
}

TEST(Layer, AnEmptyMinibatchHasNoLossAndNoGradient) {
  for (const auto& shape : layer_shapes({0.4})) {
    NetworkCase<float> c(shape, frontiers_of(shape, {0, 0, 0, 0}), 2);
    EXPECT_EQ(c.loss(), 0.0) << in_words(shape);
    for (const auto& gradient : c.gradients())
      for (const float x : gradient.data) EXPECT_EQ(x, 0.0f) << in_words(shape);
  }
}

TEST(Layer, EvaluationAllocatesNothingOnceTheLargestBlockHasPassed) {
  for (const auto& shape : layer_shapes({0})) {
    NetworkCase<float> c(shape, frontiers_of(shape, {400, 250, 150, 70}), 1);
    std::mt19937_64 random(2);
    LayerScratch<float> scratch;
    std::vector<Matrix<float>> inputs, outputs(c.blocks.size());
    for (int layer = 1; layer <= shape.layers; ++layer)
      inputs.push_back(random_matrix<float>(
          std::ssize(places_with_rows(shape, layer, c.blocks[static_cast<std::size_t>(layer - 1)])),
          c.network.input_width(layer), random));
    const auto evaluate = [&] {
      for (std::size_t l = 0; l < c.blocks.size(); ++l)
        c.network.evaluate_layer(Cpu{1}, static_cast<int>(l + 1), c.blocks[l], inputs[l], scratch,
                                 outputs[l]);
    };
    evaluate();
    const auto before = buffer_allocations();
    evaluate();
    EXPECT_EQ(buffer_allocations(), before) << in_words(shape);
  }
}

TEST(Network, DropoutIsAFunctionOfThePass) {
  NetworkCase<float> c({"sage", 2, 8, 16, 5, 0.5, 0.5, "none"}, {40, 20, 10}, 6);
  const double loss = c.loss();
  EXPECT_EQ(c.loss(), loss);
  for (std::uint64_t Pass::*key : {&Pass::seed, &Pass::epoch, &Pass::batch}) {
    ++(c.pass.*key);
    EXPECT_NE(c.loss(), loss);
    --(c.pass.*key);
  }
  EXPECT_EQ(c.loss(), loss);
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

/// Is a number of row i NaN?
bool shows_nan(const Matrix<float>& m, std::int64_t i) {
  return std::any_of(m.row(i), m.row(i) + m.columns, [](float x) { return std::isnan(x); });
}

// A diverged run must show: whoever reads a row that is NaN becomes NaN, in training (without
// dropout, which may drop it) and in evaluation, and nobody else does; nor do gradients hide it.
TEST(Layer, NaNReachesWhoeverReadsIt) {
  for (auto shape : layer_shapes({0})) {
    if (shape.normalize == "batch") continue;  // everybody reads everything
    shape.layers = 1;
    if (shape.jumping == "none") shape.classes = shape.hidden;
    NetworkCase<float> c(shape, {120, 60}, 21);
    std::int64_t bad = 17;  // a destination too
    if (!shape.types.empty())
      while (type_at(c.blocks[0].runs, bad) == 1) ++bad;  // whose rows nobody looks at
    const auto places = places_with_rows(shape, 1, c.blocks[0]);
    c.input(std::ranges::lower_bound(places, bad) - places.begin(), 3) = NAN;
    std::vector<bool> reads(60, false);
    reads[bad] = true;
    if (shape.kind == "gcn") reads[bad] = false;  // itself only where the block says so
    for (std::int64_t i = 0; i < 60; ++i)
      for (const std::int32_t j : c.blocks[0].row_indices(i)) reads[i] = reads[i] || j == bad;
    if (shape.residual) reads[bad] = true;
    LayerScratch<float> scratch;
    Matrix<float> evaluated;
    c.network.evaluate_layer(Cpu{1}, 1, c.blocks[0], c.input, scratch, evaluated);
    const auto logits = c.network.forward(Cpu{1}, c.blocks, c.input, c.pass);
    for (std::int64_t i = 0; i < 60; ++i) {
      EXPECT_EQ(shows_nan(evaluated, i), reads[i]) << in_words(shape) << " row " << i;
      EXPECT_EQ(shows_nan(logits, i), reads[i]) << in_words(shape) << " row " << i;
    }
    const auto gradients = c.gradients();
    EXPECT_TRUE(std::ranges::any_of(gradients[shape.kind == "gin" ? 1 : 0].data, [](float x) {
      return std::isnan(x);
    })) << in_words(shape);
  }
}

TEST(Layer, RefusesShapesThatMakeNoSense) {
  const NetworkShape gat{.kind = "gat", .layers = 2, .inputs = 5, .hidden = 8, .classes = 3};
  check_shape(gat);
  const auto refused = [&](const char* word, const auto& change) {
    NetworkShape shape = gat;
    change(shape);
    expect_refused(ExitCode::kUsage, {word}, [&] { check_shape(shape); });
  };
  refused("take 6 or 9", [](auto& s) { s.heads = 3; });
  refused("wide: take 9", [](auto& s) { s.heads = 9; });
  auto one_layer = gat;  // no hidden layer
  one_layer.heads = 9, one_layer.layers = 1;
  check_shape(one_layer);
  refused("multiple of model.heads", [](auto& s) { s.heads = 9, s.layers = 1, s.jumping = "max"; });
  refused("at least 1 head", [](auto& s) { s.output_heads = 0; });
  refused("[0, 1)", [](auto& s) { s.attention_dropout = 1; });
  refused("[0, 1)", [](auto& s) { s.dropout = 1; });
  refused("gat", [](auto& s) { s.kind = "gta"; });
  refused("at least 1 layer", [](auto& s) { s.layers = 0; });
  refused("normalize", [](auto& s) { s.normalize = "group"; });
  refused("aggregator", [](auto& s) { s.kind = "sage", s.aggregator = "median"; });
  refused("jumping", [](auto& s) { s.jumping = "lstm"; });
  refused("activation", [](auto& s) { s.activation = "tanh"; });
  EXPECT_THROW(Network<float>({"sgae", 2, 4, 4, 4, 0, 0, "none"}, 1), UserError) << "a network asks";
}

}  // namespace
}  // namespace espalier
