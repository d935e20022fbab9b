// ranks: 1
// Laws of an input of several tables: types whose rows are of two widths, and one without rows,
// give what they would by the formula, type after type; gradients of all tensors and of both tables
// are those of finite differences; a table whose gradient is not asked for changes nothing.
#include <gtest/gtest.h>

#include "dense/random_matrices.hpp"
#include "mpi_test.hpp"
#include "nn/network_case.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kVertices[] = {23, 9, 4};

NetworkShape shape_of(const char* kind) {
  NetworkShape shape{.kind = kind, .layers = 2, .inputs = 6, .hidden = 5, .classes = 3, .input_dropout = 0.2};
  shape.types = {{"a", 1, 4}, {"b", -1}, {"c", 0, 6}, {"d", 1, 4}};
  shape.relations = 1;
  return shape;
}

struct TwoTables {
  Network<double> network;
  std::vector<Block> storage;
  RelationsAndTypes beside;
  std::vector<BlockView<>> blocks;
  std::vector<Matrix<double>> tables;
  std::vector<std::int32_t> labels = {0, 2, 1, 1};
  Pass pass{3, 1, 5};

  explicit TwoTables(const char* kind) : network(shape_of(kind), 7) {
    std::mt19937_64 random(test_seed(5));
    const std::vector<std::int64_t> frontiers(std::begin(kVertices), std::end(kVertices));
    storage = random_minibatch(frontiers, random);
    blocks.assign(storage.begin(), storage.end());
    beside = {storage, frontiers, 1, 4, random};
    beside.show(blocks);
    for (int table = 0; table < 2; ++table)
      tables.push_back(random_matrix<double>(network.input_rows(blocks[0].runs, kVertices[0], table),
                                             table == 0 ? 6 : 4, random));
    for (auto& parameter : network.parameters())
      if (!parameter.decays)
        for (double& x : parameter.value.data) x += 0.3 * random_matrix<double>(1, 1, random).data[0];
  }
  InputRows<double> input() const {
    return InputRows<double>(std::vector<const Matrix<double>*>{&tables[0], &tables[1]});
  }
  double loss() {
    Matrix<double> unused;
    return softmax_cross_entropy<double>(Cpu{1}, network.forward(Cpu{1}, blocks, input(), pass), labels, 1.0,
                                         unused);
  }
  std::vector<Matrix<double>> gradients(Matrix<double>* first, Matrix<double>* second) {
    Matrix<double> dlogits;
    std::vector<Matrix<double>> result;
    softmax_cross_entropy<double>(Cpu{1}, network.forward(Cpu{1}, blocks, input(), pass), labels, 1.0,
                                  dlogits);
    network.backward(Cpu{1}, blocks, input(), pass, dlogits, result,
                     InputGradients<double>(std::vector<Matrix<double>*>{first, second}));
    return result;
  }
};

double largest_error(TwoTables& c, Matrix<double>& value, const Matrix<double>& analytic) {
  return largest_difference(numeric_gradient(value, [&] { return c.loss(); }), analytic);
}

TEST(InputOfSeveralTables, GradientsAreThoseOfFiniteDifferences) {
  for (const char* kind : {"rgcn", "gcn"}) {
    TwoTables c(kind);
    EXPECT_EQ(c.tables[0].rows + c.tables[1].rows,
              kVertices[0] - c.network.input_rows(c.blocks[0].runs, kVertices[0], -1));
    Matrix<double> first, second;
    const auto gradients = c.gradients(&first, &second);
    EXPECT_LT(largest_error(c, c.tables[0], first), 1e-8) << kind;
    EXPECT_LT(largest_error(c, c.tables[1], second), 1e-8) << kind;
    auto& parameters = c.network.parameters();
    for (std::size_t k = 0; k < parameters.size(); ++k)
      EXPECT_LT(largest_error(c, parameters[k].value, gradients[k]), 1e-8)
          << kind << " " << parameters[k].name;
    Matrix<double> only;
    const auto again = c.gradients(nullptr, &only);
    for (std::size_t k = 0; k < gradients.size(); ++k) EXPECT_EQ(again[k].data, gradients[k].data);
    EXPECT_EQ(only.data, second.data);
  }
}

// Of a type without rows, whose table is -1.
TEST(InputOfSeveralTables, GradientsOfNoTableGoNowhere) {
  Matrix<double> first, second;
  const InputGradients<double> both(std::vector<Matrix<double>*>{&first, &second});
  EXPECT_EQ(both.of(-1), nullptr);
  EXPECT_EQ(both.of(1), &second);
  EXPECT_EQ(both.of(2), nullptr);
}

// H_v = X_v W_t + b_t, the rows of a table in the order of its vertices.
TEST(InputOfSeveralTables, EachTypeHasALinearMapOfItsOwn) {
  TwoTables c("rgcn");
  const auto& parameters = c.network.parameters();
  const auto tensor = [&](const std::string& name) -> const Matrix<double>& {
    return std::ranges::find(parameters, name, [](const auto& p) { return p.name; })->value;
  };
  EXPECT_EQ(tensor("input.weight.a").rows, 4);
  EXPECT_EQ(tensor("input.weight.c").rows, 6);
  LayerScratch<double> scratch;
  Matrix<double> unused;
  c.network.evaluate_layer(Cpu{1}, 1, c.blocks[0], c.input(), scratch, unused);
  std::vector<std::int64_t> next(2);
  const std::string names = "abcd";
  const int tables[] = {1, -1, 0, 1};
  for (std::int64_t v = 0; v < kVertices[0]; ++v) {
    const auto type = static_cast<std::size_t>(type_at(c.blocks[0].runs, v));
    const int table = tables[type];
    const auto& bias = tensor(std::string("input.bias.") + names[type]);
    for (std::int64_t j = 0; j < 5; ++j) {
      double expected = bias(0, j);
      if (table >= 0) {
        const auto& weight = tensor(std::string("input.weight.") + names[type]);
        const auto& rows = c.tables[static_cast<std::size_t>(table)];
        for (std::int64_t k = 0; k < weight.rows; ++k)
          expected += rows(next[static_cast<std::size_t>(table)], k) * weight(k, j);
      }
      EXPECT_NEAR(scratch.input(v, j), expected, 1e-12);
    }
    if (table >= 0) ++next[static_cast<std::size_t>(table)];
  }
}

}  // namespace
}  // namespace espalier
