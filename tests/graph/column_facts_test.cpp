// ranks: 1 2 3
// Laws: what all ranks find in the columns of a graph file is what one rank finds that looks at
// every number; a graph without in-edges of some vertices says how many, by type.

#include <gtest/gtest.h>

#include <algorithm>

#include "espalier/graph/generate.hpp"
#include "espalier/graph/graph_facts.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

std::string written_graph(const VertexOptions& vertices) {
  const auto path = test_folder("column-facts") + "/graph.h5";
  generate_planted_types(test_world(),
                         {.types = "paper=300:5,author=70:3",
                          .relations = "author.writes.paper=160",
                          .inverses = false,
                          .homophily = 0.8},
                         vertices, OutputFile(path, true));
  return path;
}

GraphView relations_apart() {
  GraphView view;
  view.apart = true;
  return view;
}

NumberFacts facts_of(const Matrix<float>& numbers) {
  return {*std::ranges::min_element(numbers.data), *std::ranges::max_element(numbers.data),
          std::ranges::count_if(numbers.data, [](float x) { return x != 0; })};
}

void expect_equal(const NumberFacts& found, const NumberFacts& expected) {
  EXPECT_EQ(found.least, expected.least);
  EXPECT_EQ(found.most, expected.most);
  EXPECT_EQ(found.nonzero, expected.nonzero);
}

TEST(ColumnFacts, AreThoseOfAllNumbers) {
  const GraphFile file(test_world(),
                       written_graph({.features = 5, .classes = 4, .seed = 3, .edge_features = 2}),
                       relations_apart());
  expect_equal(read_feature_facts(test_world(), file, 0), facts_of(file.read_features<float>(0, 300, 0)));
  expect_equal(read_feature_facts(test_world(), file, 1), facts_of(file.read_features<float>(300, 370, 1)));
  const auto edges = file.info().edge_features[0].entries;
  expect_equal(read_edge_feature_facts(test_world(), file, 0),
               facts_of(file.read<float>(Column::kEdgeFeatures, 0, 0, edges)));

  std::vector<std::int64_t> labels(5, 0);
  for (const auto label : file.read_labels(0, 300, 0)) ++labels[static_cast<std::size_t>(label)];
  EXPECT_EQ(count_labels(test_world(), file, 0), labels);
}

TEST(ColumnFacts, UnknownLabelsAreCountedApart) {
  const GraphFile file(test_world(), written_graph({.features = 2, .classes = 4, .seed = 3, .labels = 3}),
                       relations_apart());
  const auto all = file.read_multi_labels(0, 300, 0);
  std::vector<std::int64_t> expected(4, 0);
  for (std::int64_t v = 0; v < 300; ++v)
    for (std::int64_t k = 0; k < 3; ++k) {
      expected[static_cast<std::size_t>(k)] += all(v, k) == 1;
      expected[3] += all(v, k) == kUnknownLabel;
    }
  EXPECT_GT(expected[3], 0);
  EXPECT_EQ(count_labels(test_world(), file, 0), expected);
}

TEST(ColumnFacts, VerticesThatNoEdgeLeadsTo) {
  const GraphFile file(test_world(), written_graph({.features = 2, .classes = 4, .seed = 3}),
                       relations_apart());
  const auto unreached = count_unreached(test_world(), file);
  ASSERT_EQ(unreached.size(), 2);
  const auto train = file.read_split(Split::kTrain, 0);
  const auto sizes = file.read_row_sizes(0, 370);
  EXPECT_EQ(unreached[0].all, std::count(sizes.begin(), sizes.begin() + 300, 0));
  EXPECT_EQ(unreached[0].train, std::ranges::count_if(train, [&](auto v) { return sizes[v] == 0; }));
  EXPECT_EQ(unreached[0].of_train, std::ssize(train));
  EXPECT_GT(unreached[0].train, 0);
  EXPECT_LT(unreached[0].all, 300);
  EXPECT_EQ(unreached[1].all, 70);  // no relation leads to authors
  EXPECT_EQ(unreached[1].of_train, 0);
}

TEST(ColumnFacts, QuantilesOfDegrees) {
  const DegreeHistogram degrees = {{1, 5}, {2, 3}, {9, 2}};  // 10 vertices
  for (const auto& [q, expected] : {std::pair{0.0, 1}, {0.5, 1}, {0.51, 2}, {0.8, 2}, {0.81, 9}, {1.0, 9}})
    EXPECT_EQ(quantile(degrees, q, 10), expected) << q;
}

}  // namespace
}  // namespace espalier
