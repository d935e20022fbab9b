// ranks: 1
// Law: every kind of layer, with what may stand around it, has the logits, the loss, the gradients
// (of the input too) and the evaluation that PyTorch gives; rows of the blocks may be empty, name a
// column twice, name their own vertex once or twice.
#include <gtest/gtest.h>

#include "dense/random_matrices.hpp"
#include "espalier/nn/network.hpp"
#include "espalier/nn/softmax_cross_entropy.hpp"
#include "mpi_test.hpp"
#include "oracle/fixture.hpp"

namespace espalier {
namespace {

NetworkShape to_shape(const nlohmann::json& json) {
  return {.kind = json.at("kind"),
          .layers = json.at("layers"),
          .inputs = json.at("inputs"),
          .hidden = json.at("hidden"),
          .classes = json.at("classes"),
          .normalize = json.at("normalize"),
          .activation = json.at("activation"),
          .heads = json.at("heads"),
          .output_heads = json.at("output_heads"),
          .aggregator = json.at("aggregator"),
          .residual = json.at("residual"),
          .jumping = json.at("jumping")};
}

/// Evaluation, layer by layer, of a whole minibatch.
Matrix<double> evaluate(const Network<double>& network, const std::vector<Block>& blocks,
                        const Matrix<double>& input) {
  Matrix<double> at = input, next, jumped;
  if (network.jumps()) jumped.resize(blocks.back().rows, network.input_width(network.stages()));
  LayerScratch<double> scratch;
  Buffer<std::int32_t> winners;
  for (int layer = 1; layer <= network.shape().layers; ++layer, std::swap(at, next)) {
    network.evaluate_layer(Cpu{1}, layer, blocks[static_cast<std::size_t>(layer - 1)], at, scratch, next);
    if (network.jumps())
      network.take_up_layer(Cpu{1}, layer, MatrixView<double>(next).first_rows(blocks.back().rows), winners,
                            jumped);
  }
  if (network.jumps()) network.evaluate_output(Cpu{1}, jumped, at);
  return at;
}

void expect_pytorch(const nlohmann::json& json) {
  Network<double> network(to_shape(json.at("shape")), 1);
  ASSERT_EQ(network.parameters().size(), json.at("parameters").size());
  for (auto& parameter : network.parameters()) {
    const auto value = to_matrix<double>(json.at("parameters").at(parameter.name));
    ASSERT_TRUE(value.rows == parameter.value.rows && value.columns == parameter.value.columns)
        << parameter.name;
    parameter.value = value;
  }
  std::vector<Block> blocks;
  for (const auto& block : json.at("blocks")) blocks.push_back(to_block(block));
  const auto input = to_matrix<double>(json.at("input"));
  const auto labels = json.at("labels").get<std::vector<std::int32_t>>();

  const auto& logits = network.forward(Cpu{1}, views_of(blocks), input, {});
  EXPECT_LT(largest_difference(logits, to_matrix<double>(json.at("logits"))), 1e-11);
  Matrix<double> dlogits, dinput;
  const double loss = softmax_cross_entropy<double>(Cpu{1}, logits, labels, 1.0, dlogits);
  EXPECT_NEAR(loss, json.at("loss").get<double>(), 1e-12 * loss);
  std::vector<Matrix<double>> gradients;
  network.backward(Cpu{1}, views_of(blocks), input, {}, dlogits, gradients, &dinput);
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    const auto& name = network.parameters()[k].name;
    EXPECT_LT(largest_difference(gradients[k], to_matrix<double>(json.at("gradients").at(name))), 1e-11)
        << name;
  }
  EXPECT_LT(largest_difference(dinput, to_matrix<double>(json.at("input_gradient"))), 1e-11);

  network.update_running_statistics(network.batch_statistics());
  ASSERT_EQ(network.running_statistics().size(), json.at("running_after").size());
  for (std::size_t k = 0; k < network.running_statistics().size(); ++k)
    EXPECT_LT(largest_difference(network.running_statistics()[k],
                                 to_matrix<double>(json.at("running_after").at(k))),
              1e-12);
  EXPECT_LT(largest_difference(evaluate(network, blocks, input), to_matrix<double>(json.at("evaluated"))),
            1e-11);
}

TEST(LayerOracle, NetworksAgreeWithPyTorch) {
  const auto cases = read_fixture("layers");
  ASSERT_EQ(cases.size(), 13u);
  for (const auto& json : cases) {
    SCOPED_TRACE(json.at("shape").dump());
    expect_pytorch(json);
  }
}

}  // namespace
}  // namespace espalier
