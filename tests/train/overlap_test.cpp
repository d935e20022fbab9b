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

void expect_overlap_changes_nothing(const SmallProblem& problem, Config config, std::int64_t bulk,
                                    std::int64_t batches_per_step, Topology topology) {
  for (const int c : divisors(test_world().size())) {
    SCOPED_TRACE(fmt::format("c {} bulk {} batches per step {} {}", c, bulk, batches_per_step,
                             topology == Topology::kReplicated ? "replicated" : "partitioned"));
    const Grid grid(test_world(), c);
    config.run.overlap = false;
    const auto plain = train(grid, problem, config, bulk, batches_per_step, topology);
    config.run.overlap = true;
    for (const std::int64_t depth : {1, 2, 5}) {
      SCOPED_TRACE(fmt::format("{} steps ahead", depth));
      config.run.prefetch_steps = depth;
      expect_equal_runs(train(grid, problem, config, bulk, batches_per_step, topology), plain);
    }
  }
}

class Overlap : public testing::Test {
 protected:
  void SetUp() override {
    if (!threads_may_communicate()) GTEST_SKIP() << "this MPI library lets one thread communicate";
  }
};

TEST_F(Overlap, ChangesNoBitAndNoByte) {
  const auto problem = small_problem(66, 5, 3, 20);
  auto config = config_of("sage", "batch");
  config.train.eval_every = 2;
  config.train.epochs = 3;
  for (const std::int64_t bulk : {1, 3, 1000})
    for (const std::int64_t batches_per_step : {1, 3, 4})
      expect_overlap_changes_nothing(problem, config, bulk, batches_per_step, Topology::kPartitioned);
  expect_overlap_changes_nothing(problem, config, 4, 3, Topology::kReplicated);
}

TEST_F(Overlap, StopsEarlyAndLeavesTheWindowOfTheEpochThatDoesNotCome) {
  auto config = config_of("sage", "none");
  config.train.learning_rate = 0.5;
  config.train.epochs = 50;
  config.train.early_stop = 1;
  expect_overlap_changes_nothing(small_problem(60, 5, 3, 20), config, 1000, 3, Topology::kPartitioned);
}

TEST_F(Overlap, ALossThatIsNotFiniteEndsTheTrainingOnAllRanks) {
  auto config = config_of("sage", "none");
  config.train.learning_rate = 1e30;
  config.run.overlap = true;
  const Grid grid(test_world(), 1);
  EXPECT_THROW(train(grid, small_problem(60, 5, 3, 20), config, 2), UserError);
}

TEST_F(Overlap, LongManyEpochsAndGridsWithoutAHang) {
  const auto problem = small_problem(300, 7, 3, 21);
  auto config = config_of("gcn", "batch");
  config.train.epochs = 60;
  config.train.eval_every = 7;
  for (const std::int64_t bulk : {1, 2, 5, 1000})
    expect_overlap_changes_nothing(problem, config, bulk, 3, Topology::kPartitioned);
}

}  // namespace
}  // namespace espalier
