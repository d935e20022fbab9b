// ranks: 1 2 4
// Laws of a job as an object: whoever has a config and a communicator can open it, several at
// once, one after another, whatever becomes of the others; each trains as if it were alone, on
// every grid. (What it draws: tests/app/job_test.py.)
#include <gtest/gtest.h>

#include <variant>

#include "open_job.hpp"

namespace espalier {
namespace {

const std::vector<std::string> kLabor = {"sampler.kind=labor"};

TEST(Job, SeveralAreOpenAtOnceAndTrainAsIfAlone) {
  auto graph = small_graph();
  const auto alone = OpenJob(small_config(1), graph).train(),
             other_alone = OpenJob(small_config(1, kLabor), graph).train();
  EXPECT_NE(alone, other_alone);
  for (const int copies : divisors(test_world().size())) {
    OpenJob one(small_config(copies), graph);
    auto between = std::make_unique<OpenJob>(small_config(copies, kLabor), graph);
    EXPECT_EQ(between->train(), other_alone) << copies;
    between.reset();
    EXPECT_EQ(one.train(), alone) << copies;
  }
}

TEST(Job, StepByStepItTrainsTheSame) {
  auto graph = small_graph();
  const auto whole = OpenJob(small_config(1), graph).train();
  for (const int copies : divisors(test_world().size())) {
    OpenJob open(small_config(copies), graph);
    std::visit(
        [&](const auto& set) {
          TrainerOn trainer(set->space(), set->lent());
          std::vector<std::int64_t> steps;
          while (!trainer.done()) {
            steps.push_back(1);
            while (trainer.step()) ++steps.back();
            const auto report = trainer.end_epoch();
            EXPECT_EQ(report.epoch, std::ssize(steps));
            EXPECT_TRUE(report.loss.has_value());
            EXPECT_TRUE(report.valid.has_value());
          }
          EXPECT_EQ(steps, (std::vector<std::int64_t>{3, 3}));
          EXPECT_GT(trainer.result().best_epoch, 0);
          EXPECT_EQ(trainer.weights_digest(), whole) << copies;
        },
        open.training);
  }
}

// A job that is refused leaves nothing that the next one meets.
TEST(Job, ARefusedOneIsAnErrorAndNoMore) {
  auto graph = small_graph();
  auto config = small_config(1);
  const auto expected = OpenJob(config, graph).train();
  config.grid.replication = parse_config("", "a test", {"grid.replication=3"}).grid.replication;
  EXPECT_THROW(OpenJob(config, graph), UserError);  // 3 does not divide the ranks
  EXPECT_EQ(OpenJob(small_config(1), graph).train(), expected);
}

}  // namespace
}  // namespace espalier
