// ranks: 1 2 3 4
// Laws: balanced weights are scikit-learn's; with class weights and smoothed labels a step is the
// mean over the weights of all its seeds. (Bits of a training on every grid, and its confusion
// matrix: tests/app/evaluation_test.py.)
#include "espalier/train/targets.hpp"

#include <gtest/gtest.h>

#include "dense/random_matrices.hpp"
#include "espalier/nn/cross_entropy.hpp"
#include "mpi_test.hpp"
#include "sample/batch_lists.hpp"
#include "train/small_job.hpp"

namespace espalier {
namespace {

TEST(Classes, BalancedWeightsAreScikitLearns) {
  // compute_class_weight("balanced", classes=[0, 1, 3], y=[0, 0, 0, 1, 3, 3])
  const std::vector<std::int32_t> labels{0, 0, 0, 1, 3, 3};
  EXPECT_EQ(balanced_weights(labels, 5), (std::vector<double>{6.0 / 9, 2, 0, 1, 0}));
}

TrainConfig weighted_config() {
  TrainConfig config;
  config.class_weights = "balanced";
  config.label_smoothing = 0.2;
  return config;
}

TEST(Classes, AStepDividesByTheWeightsOfItsSeeds) {
  const auto problem = small_problem(97, 4, 3, test_seed(8));
  const Grid grid(test_world(), 1);
  const auto targets = small_classes(grid, problem);
  const auto weights = balanced_weights(targets->train_labels, 3);
  const auto task = make_task(Cpu{1}, grid, *targets, weighted_config());
  const auto plan = EpochPlan(task->examples(),
                              {.batch_size = 7, .batches_per_step = 2, .ranks = 3, .seed = 4, .epoch = 2});
  std::mt19937_64 random(6);
  double sum = 0;
  for (std::int64_t batch = 0; batch < plan.batches(); ++batch) {
    std::vector<std::int32_t> labels;
    double weight = 0;
    for (const auto v : seeds_of(plan, batch)) {
      labels.push_back(problem.labels[static_cast<std::size_t>(v)]);
      weight += weights[static_cast<std::size_t>(labels.back())];
    }
    EXPECT_DOUBLE_EQ(task->weight(plan, batch, batch + 1), weight);
    sum += weight;
    const auto logits = random_matrix<float>(std::ssize(labels), 3, random);
    Matrix<float> dlogits, expected;
    double loss = 0;
    task->loss(Cpu{1}, plan, batch, logits, {}, 0.5, dlogits, &loss);
    EXPECT_EQ(loss, weighted_cross_entropy<float>(Cpu{1}, logits, labels, weights, 0.2, 0.5, expected));
    EXPECT_TRUE(same_bits(dlogits, expected));
  }
  EXPECT_NEAR(task->weight(plan, 0, plan.batches()), sum, 1e-12 * sum);
  EXPECT_NEAR(sum, static_cast<double>(problem.train.size()), 1e-9) << "balanced weights have mean 1";
}

// Whichever examples a batch met: over an epoch each is met once, and the weights are those of all.
TEST(Classes, ABatchOfAllVerticesIsDividedByItsShareOfAllWeights) {
  const auto problem = small_problem(97, 4, 3, test_seed(8));
  const Grid grid(test_world(), 1);
  const auto targets = small_classes(grid, problem);
  const auto task = make_task(Cpu{1}, grid, *targets, weighted_config());
  const EpochShape shape = {.batch_size = 10, .batches_per_step = 2, .ranks = 3, .seed = 4, .epoch = 2};
  auto of_all = shape;
  of_all.population = 97;
  const EpochPlan plan(task->examples(), shape), sets(task->examples(), of_all);
  const auto weight = task->weight(plan, 0, plan.batches());
  EXPECT_NEAR(task->weight(sets, 0, sets.batches()), weight, 1e-12 * weight);
  const auto logits = random_matrix<float>(97, 3, *std::make_unique<std::mt19937_64>(6));
  const auto loss_of = [&](const EpochPlan& of, std::int64_t batch, const auto& note) {
    const auto seeds = seeds_of(of, batch);
    Matrix<float> mine(std::ssize(seeds), 3), dlogits;
    for (std::int64_t i = 0; i < mine.rows; ++i)
      std::copy_n(logits.row(seeds[static_cast<std::size_t>(i)]), 3, mine.row(i));
    double loss = 0;
    task->loss(Cpu{1}, of, batch, mine, {}, 1, dlogits, &loss);
    note(dlogits);
    return loss;
  };
  double expected = 0, sum = 0;
  for (std::int64_t b = 0; b < plan.batches(); ++b) expected += loss_of(plan, b, [](const auto&) {});
  for (std::int64_t b = 0; b < sets.batches(); ++b) {
    EXPECT_NEAR(task->weight(sets, b, b + 1),
                weight * static_cast<double>(sets.examples().count_seeds(b, b + 1)) / 97, 1e-12 * weight);
    sum += loss_of(sets, b, [&](const Matrix<float>& dlogits) {
      for (std::int64_t i = 0; i < dlogits.rows; ++i)
        if (tags_of(sets, b)[static_cast<std::size_t>(i)] < 0) EXPECT_EQ(dlogits(i, 0), 0) << "no example";
    });
  }
  EXPECT_NEAR(sum, expected, 1e-9 * expected);
}

// Batches that make their own lists, which are gone with them: large ones, whose memory others get.
TEST(Classes, ABatchOfAllVerticesIsLearntByItsOwnLabels) {
  const auto problem = small_problem(900, 4, 3, test_seed(8));
  const Grid grid(test_world(), 1);
  const auto targets = small_classes(grid, problem);
  std::vector<std::int32_t> label_of(900, -1);
  for (std::size_t k = 0; k < targets->train.size(); ++k)
    label_of[targets->train[k]] = targets->train_labels[k];
  for (const auto& config : {TrainConfig(), weighted_config()}) {
    const auto task = make_task(Cpu{1}, grid, *targets, config);
    const EpochPlan plan(task->examples(), {.batch_size = 300, .seed = 4, .epoch = 2, .population = 900});
    const auto weights = balanced_weights(targets->train_labels, 3);
    std::mt19937_64 random(6);
    for (std::int64_t batch = 0; batch < plan.batches(); ++batch) {
      std::vector<std::int32_t> labels;
      for (const auto v : seeds_of(plan, batch)) labels.push_back(label_of[static_cast<std::size_t>(v)]);
      const auto logits = random_matrix<float>(std::ssize(labels), 3, random);
      Matrix<float> dlogits, expected;
      double loss = 0;
      task->loss(Cpu{1}, plan, batch, logits, {}, 0.5, dlogits, &loss);
      EXPECT_EQ(loss,
                config.class_weights == "none"
                    ? softmax_cross_entropy<float>(Cpu{1}, logits, labels, 0.5, expected)
                    : weighted_cross_entropy<float>(Cpu{1}, logits, labels, weights, 0.2, 0.5, expected));
      EXPECT_TRUE(same_bits(dlogits, expected));
    }
  }
}

}  // namespace
}  // namespace espalier
