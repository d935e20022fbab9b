// ranks: 1 2 3 4 6
// Laws: exact evaluation is the network's formula over the dense matrix of the whole graph,
// whatever the grid and however many chunks; each split is evaluated once, by its own vertices
// and labels.
#include "espalier/train/evaluator.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "dense/random_matrices.hpp"
#include "mpi_test.hpp"
#include "train/dense_network.hpp"
#include "train/small_job.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kVertices =
    513;  // at p = 2 and 4, ranks of one column need unequal numbers of 64-row chunks

// The class of each vertex; -1 where float and double may disagree about the largest logit.
std::vector<std::int32_t> predict(const Matrix<double>& logits) {
  std::vector<std::int32_t> predictions;
  for (std::int64_t v = 0; v < logits.rows; ++v) {
    const auto* row = logits.row(v);
    const auto* largest = std::max_element(row, row + logits.columns);
    double second = -1e300;
    for (const auto* x = row; x < row + logits.columns; ++x)
      if (x != largest) second = std::max(second, *x);
    predictions.push_back(*largest - second > 1e-4 ? static_cast<std::int32_t>(largest - row) : -1);
  }
  return predictions;
}

Metrics plain_metrics(const Buffer<std::int64_t>& split, const std::vector<std::int32_t>& labels,
                      const std::vector<std::int32_t>& predictions) {
  std::set<std::int32_t> classes;
  double right = 0, f1 = 0;
  for (const auto v : split) {
    const auto label = labels[static_cast<std::size_t>(v)],
               predicted = predictions[static_cast<std::size_t>(v)];
    classes.insert({label, predicted});
    right += label == predicted;
  }
  for (const auto c : classes) {
    double both = 0, either = 0;
    for (const auto v : split) {
      both += labels[static_cast<std::size_t>(v)] == c && predictions[static_cast<std::size_t>(v)] == c;
      either += (labels[static_cast<std::size_t>(v)] == c) + (predictions[static_cast<std::size_t>(v)] == c);
    }
    f1 += 2 * both / either / static_cast<double>(classes.size());
  }
  return {{{"accuracy", right / static_cast<double>(split.size())}, {"macro_f1", f1}}, std::ssize(split)};
}

void expect_metrics(const Metrics& found, const Metrics& expected) {
  EXPECT_NEAR(*found.find("accuracy"), *expected.find("accuracy"), 1e-12);
  EXPECT_NEAR(*found.find("macro_f1"), *expected.find("macro_f1"), 1e-12);
  EXPECT_EQ(found.vertices, expected.vertices);
}

TEST(Evaluator, IsDensePropagationOnEveryGridInAnyChunks) {
  const auto seed = test_seed(14);
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  auto problem = small_problem(kVertices, 7, 4, seed);
  const auto train = problem.train, valid = problem.valid, test = problem.test;
  for (const auto& [kind, layers, normalize] :
       {std::tuple{"sage", 2, "batch"}, {"sage", 3, "none"}, {"gcn", 3, "batch"}, {"gcn", 2, "none"}}) {
    SCOPED_TRACE(fmt::format("{} {} {}", kind, layers, normalize));
    const auto network = network_of({kind, layers, 7, layers == 2 ? 5 : 9, 4, 0.5, 0.5, normalize}, random);
    const auto predictions = predict(dense_layers(problem, network).back());
    // Two of three labels are right; vertices on the edge between two classes are not evaluated.
    for (std::size_t v = 0; v < predictions.size(); ++v)
      problem.labels[v] =
          random() % 3 == 0 ? static_cast<std::int32_t>(random() % 4) : std::max(predictions[v], 0);
    const auto on_edge = [&](std::int64_t v) { return predictions[static_cast<std::size_t>(v)] < 0; };
    problem.train = train;
    problem.valid = valid;
    problem.test = test;
    std::erase_if(problem.train, on_edge);
    std::erase_if(problem.valid, on_edge);
    std::erase_if(problem.test, on_edge);
    const auto expected_train = plain_metrics(problem.train, problem.labels, predictions);
    const auto expected_valid = plain_metrics(problem.valid, problem.labels, predictions),
               expected_test = plain_metrics(problem.test, problem.labels, predictions);
    EXPECT_NE(expected_valid.find("accuracy"), expected_test.find("accuracy"))
        << "the case tells the splits apart";
    EXPECT_NE(expected_valid.find("accuracy"), expected_train.find("accuracy"));
    for (const int c : divisors(test_world().size()))
      for (const std::int64_t chunk_bytes : {std::int64_t{1}, std::int64_t{20000}, std::int64_t{1} << 30}) {
        SCOPED_TRACE(fmt::format("c {} chunk_bytes {}", c, chunk_bytes));
        const Grid grid(test_world(), c);
        problem.owned = chunk_bytes == 1 ? Owned::kAtRandom : Owned::kInRanges;
        const SmallJob job(grid, problem, kind, {1}, chunk_bytes);
        const auto found = job.evaluator.evaluate(Cpu{1}, network);
        expect_metrics(found.train, expected_train);
        expect_metrics(found.valid, expected_valid);
        expect_metrics(found.test, expected_test);
      }
  }
}

TEST(Evaluator, AnEmptySplitIsNotJudgedAndMoreRanksThanRowsAreFine) {
  auto problem = small_problem(3, 2, 2, 1);  // row 0: all, row 1: none, row 2: itself
  problem.valid = {0, 1, 2};
  problem.test.clear();
  std::mt19937_64 random(3);
  const auto network = network_of({"sage", 2, 2, 3, 2, 0, 0, "none"}, random);
  const auto expected =
      plain_metrics(problem.valid, problem.labels, predict(dense_layers(problem, network).back()));
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    const SmallJob job(grid, problem, "sage", {1}, 1);
    const auto found = job.evaluator.evaluate(Cpu{1}, network);
    expect_metrics(found.valid, expected);
    EXPECT_EQ(found.test.vertices, 0);
  }
}

}  // namespace
}  // namespace espalier
