// ranks: 1 2 3 4 6
// Laws: the task "labels" gives each seed its own labels, whichever batch it is in, and divides by
// the number of known ones; its scores are those of all vertices side by side, on every grid.
// (Bits of a training on every grid: tests/app/labels_test.py.)
#include "espalier/train/targets.hpp"

#include <gtest/gtest.h>

#include "dense/random_matrices.hpp"
#include "espalier/nn/cross_entropy.hpp"
#include "espalier/train/metrics.hpp"
#include "mpi_test.hpp"
#include "sample/batch_lists.hpp"
#include "train/small_job.hpp"

namespace espalier {
namespace {

TrainConfig labels_config(const char* metric = "auto") {
  TrainConfig config;
  config.task = "labels";
  config.metric = metric;
  return config;
}

TEST(Labels, ABatchIsLearntByTheLabelsOfItsSeeds) {
  const auto problem = small_problem(97, 4, 3, test_seed(8));
  const Grid grid(test_world(), 1);
  const auto targets = small_labels(grid, problem);
  const auto task = make_task(Cpu{1}, grid, *targets, labels_config());
  ASSERT_EQ(task->outputs(), 3);
  const auto plan = EpochPlan(task->examples(),
                              {.batch_size = 7, .batches_per_step = 2, .ranks = 3, .seed = 4, .epoch = 2});
  std::mt19937_64 random(6);
  std::int64_t all_known = 0;
  for (std::int64_t batch = 0; batch < plan.batches(); ++batch) {
    const auto seeds = seeds_of(plan, batch);
    const auto logits = random_matrix<float>(std::ssize(seeds), 3, random);
    Matrix<float> dlogits;
    double loss = 0, expected = 0;
    task->loss(Cpu{1}, plan, batch, logits, {}, 0.5, dlogits, &loss);
    std::int64_t known = 0;
    for (std::int64_t i = 0; i < logits.rows; ++i)
      for (std::int64_t k = 0; k < 3; ++k) {
        const auto label = problem.several_labels(seeds[static_cast<std::size_t>(i)], k);
        const auto one = label_loss(logits(i, k), label);
        known += label != kUnknownLabel;
        expected += one.loss;
        EXPECT_FLOAT_EQ(dlogits(i, k), static_cast<float>(0.5 * one.gradient));
      }
    EXPECT_NEAR(loss, expected, 1e-12 * expected);
    EXPECT_EQ(task->weight(plan, batch, batch + 1), known);
    all_known += known;
  }
  EXPECT_EQ(task->weight(plan, 0, plan.batches()), all_known);
  EXPECT_LT(all_known, 3 * std::ssize(problem.train)) << "some are unknown";
}

// The scores of a split, whole, on one rank.
LabelScores plain_scores(const SmallProblem& problem, const Buffer<std::int64_t>& split,
                         const Matrix<float>& logits) {
  std::vector<LabelRanking> rankings;
  for (std::int64_t k = 0; k < logits.columns; ++k) {
    std::vector<float> scores;
    std::vector<std::uint8_t> labels;
    for (const auto v : split) {
      scores.push_back(logits(v, k));
      labels.push_back(problem.several_labels(v, k));
    }
    rankings.push_back(rank_label(scores, labels));
  }
  return label_scores(rankings);
}

void expect_scores(const Metrics& found, const LabelScores& expected) {
  EXPECT_EQ(found.find("roc_auc"), expected.roc_auc);
  EXPECT_EQ(found.find("average_precision"), expected.average_precision);
  EXPECT_EQ(found.find("micro_f1"), expected.micro_f1);
  EXPECT_EQ(found.find("macro_f1"), expected.macro_f1);
}

// Of rows that come out of a pass so many at a time.
Evaluation evaluated(const Task& task, const Cpu& cpu, const Matrix<float>& rows, std::int64_t at_once) {
  const auto evaluator = task.evaluator();
  for (std::int64_t from = 0; from < rows.rows; from += at_once) {
    Matrix<float> chunk(std::min(at_once, rows.rows - from), rows.columns);
    std::copy_n(rows.row(from), chunk.data.size(), chunk.data.begin());
    evaluator->take(cpu, from, chunk);
  }
  return evaluator->finish(cpu, {});
}

TEST(Labels, ScoresAreThoseOfAllVerticesOnEveryGridInAnyChunks) {
  for (const std::int64_t n : {std::int64_t{5}, std::int64_t{211}}) {
    auto problem = small_problem(n, 4, 3, test_seed(8));
    if (n == 5) {  // more ranks than vertices, and one split without any
      problem.train = {0, 3};
      problem.valid = {1, 2, 4};
      problem.test.clear();
      problem.several_labels.data = {1, 0, 1, 0, 1, 1, 1, 0, 255, 0, 1, 1, 1, 0, 0};
    }
    std::mt19937_64 random(6);
    auto logits = random_matrix<float>(n, 3, random);
    for (float& z : logits.data) z = std::round(z * 8) / 8;  // ties
    for (const int c : divisors(test_world().size())) {
      problem.owned = kAllOwned[(n + c) % 3];
      SCOPED_TRACE(fmt::format("n {} c {} owned {}", n, c, static_cast<int>(problem.owned)));
      const Grid grid(test_world(), c);
      const auto targets = small_labels(grid, problem);
      const auto task = make_task(Cpu{1}, grid, *targets, labels_config());
      const auto mine = rows_of_part(logits, targets->evaluated_by, targets->rank);
      for (const int threads : {1, 3}) {
        const auto found = evaluated(*task, Cpu{threads}, mine, threads == 1 ? n : 7);
        expect_scores(found.train, plain_scores(problem, problem.train, logits));
        expect_scores(found.valid, plain_scores(problem, problem.valid, logits));
        if (n == 5)
          EXPECT_EQ(found.test.vertices, 0);
        else
          expect_scores(found.test, plain_scores(problem, problem.test, logits));
      }
    }
  }
}

TEST(Labels, ARankingThatValidationDoesNotDefineIsLeftOut) {
  auto problem = small_problem(30, 4, 3, 2);
  for (const auto v : problem.valid)
    for (std::int64_t k = 0; k < 3; ++k) problem.several_labels(v, k) = 1;
  const Grid grid(test_world(), 1);
  const auto targets = small_labels(grid, problem);
  const auto task = make_task(Cpu{1}, grid, *targets, labels_config("micro_f1"));
  const auto found = evaluated(*task, Cpu{1}, filled_matrix(targets->evaluated_rows(), 3, 0.0f), 4);
  EXPECT_EQ(found.valid.find("roc_auc"), std::nullopt);
  EXPECT_EQ(found.valid.find("micro_f1"), 0) << "a score of 0 predicts 0";
}

}  // namespace
}  // namespace espalier
