// ranks: 1
// Laws of rows of pairs on the CPU: what is made of them is the matrix that they stand for, and its
// entries; those of paired_input_cases.hpp; no bit depends on threads, and a row of an evaluation
// on that row alone; so does a network with tables of both kinds.
#include "nn/paired_input_cases.hpp"

#include "espalier/base/error.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

TEST(PairedRows, AreTheMatrixAndItsEntries) {
  std::mt19937_64 random(test_seed(1));
  for (const std::int64_t rows : {0, 1, 70}) {
    const PairedMatrix<float> of(rows, 9, 4, random);
    Matrix<float> wide;
    Csr<std::int32_t> entries;
    widen_rows(Cpu{2}, PairedRows<float>{of.pairs, 9}, wide);
    EXPECT_EQ(wide.data, of.wide.data);
    to_entries(Cpu{2}, PairedRows<float>{of.pairs, 9}, entries);
    EXPECT_EQ(entries.entries(), std::ranges::count_if(of.wide.data, [](float x) { return x != 0; }));
    for (std::int64_t i = 0; i < rows; ++i)
      for (auto e = entries.row_begin(i); e < entries.row_end(i); ++e)
        EXPECT_EQ(entries.values[e], of.wide(i, entries.indices[e]));
  }
}

TEST(PairedInput, GivesWhatTheMatrixGives) {
  std::mt19937_64 random(test_seed(2));
  int sparse = 0;
  for (const auto& shape : shapes_of_one_type()) {
    const auto frontiers = frontiers_of(shape, {60, 30, 14, 8});
    NetworkCase<double> c(shape, frontiers, 3);
    auto paired = shape;
    paired.pairs = {4};
    sparse += reads_entries(paired);
    Network<double> network(paired, 3);
    for (std::size_t k = 0; k < network.parameters().size(); ++k)
      network.parameters()[k].value = c.network.parameters()[k].value;
    const PairedMatrix<double> rows(frontiers.front(), shape.inputs, 4, random);
    const auto dlogits = random_matrix<double>(frontiers.back(), shape.classes, random);
    const PairedResults<double> found(Cpu{1}, network, c.blocks, rows.pairs, c.pass, dlogits),
        expected(Cpu{1}, c.network, c.blocks, rows.wide, c.pass, dlogits);
    expect_near(found, expected, 1e-12, in_words(shape));
    const PairedResults<double> threads(Cpu{5}, network, c.blocks, rows.pairs, c.pass, dlogits);
    for (std::size_t k = 0; k < found.matrices.size(); ++k)
      EXPECT_EQ(threads.matrices[k].data, found.matrices[k].data) << in_words(shape);
  }
  EXPECT_GT(sparse, 5) << "layers that read entries must have been tried";
}

// Chunks of rows as an evaluation has them.
TEST(PairedInput, ARowOfAnEvaluationIsItsOwn) {
  std::mt19937_64 random(test_seed(3));
  for (const char* kind : {"sage", "gcn", "gat"}) {
    NetworkShape shape{.kind = kind, .layers = 1, .inputs = 50, .hidden = 9, .classes = 5, .pairs = {7}};
    const Network<float> network(shape, 5);
    const PairedMatrix<float> rows(40, 50, 7, random);
    const auto whole = random_minibatch({40, 20}, random)[0];
    const auto evaluated = [&](std::int64_t count) {
      auto block = copy_of(BlockView<>(whole));
      block.rows = count;
      block.indptr.resize(count + 1);
      block.indices.resize(block.indptr[count]);
      block.values.resize(block.has_values() ? block.indptr[count] : 0);
      LayerScratch<float> scratch;
      Matrix<float> output;
      network.evaluate_layer(Cpu{2}, 1, block, rows.pairs, scratch, output);
      return output;
    };
    const auto all = evaluated(20), some = evaluated(3);
    EXPECT_TRUE(std::equal(some.data.begin(), some.data.end(), all.data.begin())) << kind;
  }
}

TEST(PairedInput, BesideATableOfAnotherKind) {
  std::mt19937_64 random(test_seed(4));
  NetworkShape shape{.kind = "rgcn", .layers = 1, .inputs = 6, .hidden = 5, .classes = 5};
  shape.types = {{"a", 0, 6}, {"b", 1, 4}};
  auto paired = shape;
  paired.pairs = {3, 0};
  Network<double> network(paired, 2), wide(shape, 2);
  auto block = random_minibatch({20, 9}, random)[0];
  const std::vector<TypeRun> runs = {{0, 12, 0}, {12, 20, 1}};
  BlockView<> view(block);
  view.runs = runs;
  const PairedMatrix<double> rows(12, 6, 3, random);
  const auto other = random_matrix<double>(8, 4, random);
  const auto dlogits = random_matrix<double>(9, 5, random);
  const auto results = [&](Network<double>& of, const Matrix<double>& first) {
    const InputRows<double> input(std::vector<const Matrix<double>*>{&first, &other});
    std::vector<Matrix<double>> all = {of.forward(Cpu{1}, std::span(&view, 1), input, {1, 2, 3})}, gradients;
    of.backward(Cpu{1}, std::span(&view, 1), input, {1, 2, 3}, dlogits, gradients,
                InputGradients<double>(std::vector<Matrix<double>*>{nullptr, nullptr}));
    std::ranges::move(gradients, std::back_inserter(all));
    return all;
  };
  const auto found = results(network, rows.pairs), expected = results(wide, rows.wide);
  for (std::size_t k = 0; k < found.size(); ++k) EXPECT_EQ(found[k].data, expected[k].data) << k;
}

}  // namespace
}  // namespace espalier
