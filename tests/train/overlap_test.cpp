// ranks: 1 2 3 4
// Laws: run.overlap, of any depth, changes no bit and no byte: losses, metrics, weights, sample
// digests and what every stage and step moves are those of the run without it, for every grid,
// topology, window and number of batches per step.
#include <gtest/gtest.h>

#include "mpi_test.hpp"
#include "train/small_training.hpp"

namespace espalier {
namespace {

void expect_equal(const std::map<std::string, StageVolume>& a, const std::map<std::string, StageVolume>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [label, volume] : a) {
    const auto& other = b.at(label);
    EXPECT_EQ(volume.messages, other.messages) << label;
    EXPECT_EQ(volume.rounds, other.rounds) << label;
    EXPECT_EQ(volume.total, other.total) << label;
    EXPECT_EQ(volume.max_rank, other.max_rank) << label;
    EXPECT_NEAR(volume.predicted, other.predicted, 1e-9 * volume.predicted)
        << label << ", a sum of fractions";
  }
}

void expect_equal(const Run& a, const Run& b) {
  ASSERT_EQ(a.epochs.size(), b.epochs.size());
  EXPECT_EQ(a.result.best_epoch, b.result.best_epoch);
  EXPECT_TRUE(same_weights(a.last, b.last));
  for (std::size_t e = 0; e < a.epochs.size(); ++e) {
    SCOPED_TRACE(fmt::format("epoch {}", e + 1));
    EXPECT_EQ(*a.epochs[e].loss, *b.epochs[e].loss);
    EXPECT_EQ(a.epochs[e].counts.digest, b.epochs[e].counts.digest);
    EXPECT_EQ(a.epochs[e].counts.input_rows, b.epochs[e].counts.input_rows);
    EXPECT_EQ(a.epochs[e].valid.has_value(), b.epochs[e].valid.has_value());
    if (a.epochs[e].valid && b.epochs[e].valid)
      EXPECT_EQ(a.epochs[e].valid->find("macro_f1"), b.epochs[e].valid->find("macro_f1"));
    EXPECT_TRUE(same_weights(a.weights[e], b.weights[e]));
    expect_equal(a.epochs[e].bytes, b.epochs[e].bytes);
    expect_equal(a.epochs[e].steps, b.epochs[e].steps);
  }
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
      expect_equal(train(grid, problem, config, bulk, batches_per_step, topology), plain);
    }
  }
}

TEST(Overlap, ChangesNoBitAndNoByte) {
  if (!threads_may_communicate()) GTEST_SKIP() << "this MPI library lets one thread communicate";
  const auto problem = small_problem(66, 5, 3, 20);
  auto config = config_of("sage", "batch");
  config.train.eval_every = 2;
  config.train.epochs = 3;
  for (const std::int64_t bulk : {1, 3, 1000})
    for (const std::int64_t batches_per_step : {1, 3, 4})
      expect_overlap_changes_nothing(problem, config, bulk, batches_per_step, Topology::kPartitioned);
  expect_overlap_changes_nothing(problem, config, 4, 3, Topology::kReplicated);
}

TEST(Overlap, StopsEarlyAndLeavesTheWindowOfTheEpochThatDoesNotCome) {
  if (!threads_may_communicate()) GTEST_SKIP() << "this MPI library lets one thread communicate";
  auto config = config_of("sage", "none");
  config.train.learning_rate = 0.5;
  config.train.epochs = 50;
  config.train.early_stop = 1;
  expect_overlap_changes_nothing(small_problem(60, 5, 3, 20), config, 1000, 3, Topology::kPartitioned);
}

TEST(Overlap, ALossThatIsNotFiniteEndsTheTrainingOnAllRanks) {
  if (!threads_may_communicate()) GTEST_SKIP() << "this MPI library lets one thread communicate";
  auto config = config_of("sage", "none");
  config.train.learning_rate = 1e30;
  config.run.overlap = true;
  const Grid grid(test_world(), 1);
  EXPECT_THROW(train(grid, small_problem(60, 5, 3, 20), config, 2), UserError);
}

TEST(Overlap, LongManyEpochsAndGridsWithoutAHang) {
  if (!threads_may_communicate()) GTEST_SKIP() << "this MPI library lets one thread communicate";
  const auto problem = small_problem(300, 7, 3, 21);
  auto config = config_of("gcn", "batch");
  config.train.epochs = 60;
  config.train.eval_every = 7;
  for (const std::int64_t bulk : {1, 2, 5, 1000})
    expect_overlap_changes_nothing(problem, config, bulk, 3, Topology::kPartitioned);
}

}  // namespace
}  // namespace espalier
