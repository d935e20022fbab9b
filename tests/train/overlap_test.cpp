// ranks: 1 3 4
// long ranks: 2
// Laws: run.overlap, of any depth, changes no bit and no byte: losses, metrics, weights, sample
// digests and what every stage and step moves are those of the run without it, for every grid,
// topology, window and number of batches per step.
#include <gtest/gtest.h>

#include "mpi_test.hpp"
#include "train/same_epochs.hpp"
#include "train/small_training.hpp"

namespace espalier {
namespace {

void expect_equal_runs(const Run& a, const Run& b) {
  EXPECT_EQ(a.result.best_epoch, b.result.best_epoch);
  EXPECT_TRUE(same_weights(a.last, b.last));
  expect_same_epochs(a.epochs, b.epochs);
  for (std::size_t e = 0; e < std::min(a.weights.size(), b.weights.size()); ++e)
    EXPECT_TRUE(same_weights(a.weights[e], b.weights[e])) << "epoch " << e + 1;
}

constexpr std::int64_t kDepths[] = {1, 2, 5};

void expect_overlap_changes_nothing(const SmallProblem& problem, Config config, int c, std::int64_t bulk,
                                    std::int64_t batches_per_step, Topology topology,
                                    std::span<const std::int64_t> depths = kDepths) {
  SCOPED_TRACE(fmt::format("c {} bulk {} batches per step {} {}", c, bulk, batches_per_step,
                           topology == Topology::kReplicated ? "replicated" : "partitioned"));
  const Grid grid(test_world(), c);
  config.run.overlap = false;
  const auto plain = train(grid, problem, config, bulk, batches_per_step, topology);
  config.run.overlap = true;
  for (const auto depth : depths) {
    SCOPED_TRACE(fmt::format("{} steps ahead", depth));
    config.run.prefetch_steps = depth;
    expect_equal_runs(train(grid, problem, config, bulk, batches_per_step, topology), plain);
  }
}

std::span<const std::int64_t> one_depth(std::size_t k) {
  return std::span(kDepths).subspan(k % 3, 1);
}

constexpr std::int64_t kWindows[] = {1, 3, 1000}, kBatchesPerStep[] = {1, 3, 4};

class Overlap : public testing::Test {
 protected:
  void SetUp() override {
    if (!threads_may_communicate()) GTEST_SKIP() << "this MPI library lets one thread communicate";
  }
};

Config config_of_three_epochs() {
  auto config = config_of("sage", "batch");
  config.train.eval_every = 2;
  config.train.epochs = 3;
  return config;
}

// Every pair of values of c, window, batches per step and depth: the cells of a
// Graeco-Latin square.
TEST_F(Overlap, ChangesNoBitAndNoByte) {
  const auto problem = small_problem(66, 5, 3, 20);
  const auto config = config_of_three_epochs();
  const auto grids = divisors(test_world().size());
  for (std::size_t w = 0; w < 3; ++w)
    for (std::size_t b = 0; b < 3; ++b)
      expect_overlap_changes_nothing(problem, config, grids[(w + b) % grids.size()], kWindows[w],
                                     kBatchesPerStep[b], Topology::kPartitioned, one_depth(w + 2 * b));
  for (std::size_t k = 0; k < grids.size(); ++k)
    expect_overlap_changes_nothing(problem, config, grids[k], 4, 3, Topology::kReplicated, one_depth(k));
}

TEST_F(Overlap, LongChangesNothingOfEveryGridWindowStepAndDepth) {
  const auto problem = small_problem(66, 5, 3, 20);
  const auto config = config_of_three_epochs();
  for (const int c : divisors(test_world().size())) {
    for (const auto bulk : kWindows)
      for (const auto batches_per_step : kBatchesPerStep)
        expect_overlap_changes_nothing(problem, config, c, bulk, batches_per_step, Topology::kPartitioned);
    expect_overlap_changes_nothing(problem, config, c, 4, 3, Topology::kReplicated);
  }
}

TEST_F(Overlap, StopsEarlyAndLeavesTheWindowOfTheEpochThatDoesNotCome) {
  auto config = config_of("sage", "none");
  config.train.learning_rate = 0.5;
  config.train.epochs = 50;
  config.train.early_stop = 1;
  const auto grids = divisors(test_world().size());
  for (std::size_t k = 0; k < grids.size(); ++k)
    expect_overlap_changes_nothing(small_problem(60, 5, 3, 20), config, grids[k], 1000, 3,
                                   Topology::kPartitioned, one_depth(k));
}

TEST_F(Overlap, ALossThatIsNotFiniteEndsTheTrainingOnAllRanks) {
  auto config = config_of("sage", "none");
  config.train.learning_rate = 1e30;
  config.run.overlap = true;
  const Grid grid(test_world(), 1);
  EXPECT_TRUE(train_to_divergence(grid, small_problem(60, 5, 3, 20), config, 2).result.diverged.has_value());
}

TEST_F(Overlap, LongManyEpochsAndGridsWithoutAHang) {
  const auto problem = small_problem(300, 7, 3, 21);
  auto config = config_of("gcn", "batch");
  config.train.epochs = 60;
  config.train.eval_every = 7;
  for (const int c : divisors(test_world().size()))
    for (const std::int64_t bulk : {1, 2, 5, 1000})
      expect_overlap_changes_nothing(problem, config, c, bulk, 3, Topology::kPartitioned);
}

}  // namespace
}  // namespace espalier
