// ranks: 1
// Law: every kind of layer, with what may stand around it, has the logits, the loss, the gradients
// (of the input too) and the evaluation that PyTorch gives; rows of the blocks may be empty, name a
// column twice, name their own vertex once or twice.
#include <gtest/gtest.h>

#include "dense/random_matrices.hpp"
#include "espalier/nn/cross_entropy.hpp"
#include "espalier/nn/network.hpp"
#include "mpi_test.hpp"
#include "nn/network_case.hpp"
#include "oracle/fixture.hpp"

namespace espalier {
namespace {

NetworkShape to_shape(const nlohmann::json& json) {
  std::vector<InputShape::Type> types;
  for (const auto& type : json.value("types", nlohmann::json::array()))
    types.push_back({type.at(0), type.at(1).get<bool>() ? 0 : -1});
  return {.kind = json.at("kind"),
          .layers = json.at("layers"),
          .inputs = json.at("inputs"),
          .hidden = json.at("hidden"),
          .classes = json.at("classes"),
          .normalize = json.at("normalize"),
          .activation = json.value("activation", "relu"),
          .heads = json.value("heads", 1),
          .output_heads = json.value("output_heads", 1),
          .aggregator = json.value("aggregator", "mean"),
          .residual = json.value("residual", false),
          .jumping = json.value("jumping", "none"),
          .types = types,
          .relations = json.value("relations", 1),
          .bases = json.value("bases", 1)};
}

/// The blocks of a case, with what stands beside entries and vertices.
struct OracleMinibatch {
  std::vector<Block> storage;
  std::vector<std::vector<std::uint8_t>> relations;
  std::vector<TypeRun> runs;
  std::vector<BlockView<>> blocks;

  explicit OracleMinibatch(const nlohmann::json& json) {
    for (const auto& block : json.at("blocks")) {
      storage.push_back(to_block(block));
      relations.push_back(block.value("relations", std::vector<std::uint8_t>()));
    }
    for (const auto& run : json.value("runs", nlohmann::json::array()))
      runs.push_back({run.at(0), run.at(1), run.at(2)});
    blocks.assign(storage.begin(), storage.end());
    for (auto& block : blocks)
      block.runs = {runs.begin(),
                    std::ranges::find_if(runs, [&](const TypeRun& run) { return run.end > block.columns; })};
    for (std::size_t l = 0; l < blocks.size(); ++l)
      blocks[l].relations = {!relations[l].empty(), relations[l]};
  }
};

// PyTorch has a row for every vertex; those of types without features are not looked at, and have
// gradient 0.
Matrix<double> rows_with_features(const NetworkShape& shape, const BlockView<>& block,
                                  const Matrix<double>& all) {
  const auto places = places_with_rows(shape, 1, block);
  Matrix<double> rows(std::ssize(places), all.columns);
  for (std::int64_t k = 0; k < rows.rows; ++k)
    std::copy_n(all.row(places[static_cast<std::size_t>(k)]), all.columns, rows.row(k));
  return rows;
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
  const OracleMinibatch minibatch(json);
  const auto& blocks = minibatch.blocks;
  const auto input = rows_with_features(network.shape(), blocks[0], to_matrix<double>(json.at("input")));
  const auto labels = json.at("labels").get<std::vector<std::int32_t>>();

  const auto& logits = network.forward(Cpu{1}, blocks, input, {});
  EXPECT_LT(largest_difference(logits, to_matrix<double>(json.at("logits"))), 1e-11);
  Matrix<double> dlogits, dinput;
  const double loss = softmax_cross_entropy<double>(Cpu{1}, logits, labels, 1.0, dlogits);
  EXPECT_NEAR(loss, json.at("loss").get<double>(), 1e-12 * loss);
  std::vector<Matrix<double>> gradients, when_announced(network.parameters().size());
  const auto groups = gradient_groups(network.shape());
  std::size_t announced = 0;
  network.backward(Cpu{1}, blocks, input, {}, dlogits, gradients, &dinput, [&](std::size_t count) {
    for (; announced < count; ++announced) {
      const auto& group = groups.at(announced);
      std::int64_t numbers = 0;
      for (auto k = group.first; k < group.first + group.count; ++k) {
        EXPECT_TRUE(when_announced[k].data.empty()) << "announced twice";
        when_announced[k] = gradients[k];
        numbers += std::ssize(gradients[k].data);
      }
      EXPECT_EQ(group.numbers, numbers);
    }
  });
  EXPECT_EQ(announced, groups.size());
  for (std::size_t k = 0; k < gradients.size(); ++k) {
    const auto& name = network.parameters()[k].name;
    EXPECT_EQ(when_announced[k].data, gradients[k].data) << name << " was announced too early";
    EXPECT_LT(largest_difference(gradients[k], to_matrix<double>(json.at("gradients").at(name))), 1e-11)
        << name;
  }
  if (json.contains("input_gradient"))
    EXPECT_LT(largest_difference(dinput, rows_with_features(network.shape(), blocks[0],
                                                            to_matrix<double>(json.at("input_gradient")))),
              1e-11);

  update_running_statistics(Cpu{1}, network);
  ASSERT_EQ(network.running_statistics().size(), json.at("running_after").size());
  for (std::size_t k = 0; k < network.running_statistics().size(); ++k)
    EXPECT_LT(largest_difference(network.running_statistics()[k],
                                 to_matrix<double>(json.at("running_after").at(k))),
              1e-12);
  EXPECT_LT(largest_difference(evaluate(network, blocks, input), to_matrix<double>(json.at("evaluated"))),
            1e-11);
}

void expect_pytorch(const std::string& fixture, std::size_t count) {
  const auto cases = read_fixture(fixture);
  ASSERT_EQ(cases.size(), count);
  for (const auto& json : cases) {
    SCOPED_TRACE(json.at("shape").dump());
    expect_pytorch(json);
  }
}

TEST(LayerOracle, NetworksAgreeWithPyTorch) {
  expect_pytorch("layers", 26);
  expect_pytorch("networks", 6);  // convolutions with every normalisation
}

}  // namespace
}  // namespace espalier
