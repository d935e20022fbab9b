// ranks: 1 3
// Laws: evaluation happens when it is due; the weights of the first best validation metric
// (train.metric) stay, with its running statistics and test metrics; patience counts evaluations
// without a gain; numbers that are not finite end the training on all ranks, which say where, and
// the best weights of before stay.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "mpi_test.hpp"
#include "train/small_training.hpp"

namespace espalier {
namespace {

// Labels are noise, so the validation accuracy goes up and down.
Config noisy_config() {
  auto config = config_of("sage", "batch");
  config.train.learning_rate = 0.5;
  config.train.epochs = 9;
  return config;
}

// The epoch whose weights must stay, and when `patience` evaluations in a row without a gain are
// over (0: never).
std::pair<std::int64_t, std::int64_t> plain_best(const std::vector<EpochReport>& epochs,
                                                 std::int64_t patience,
                                                 const std::string& metric = "accuracy") {
  std::int64_t best = 0, waited = 0;
  double largest = -1;
  for (const auto& epoch : epochs) {
    if (!epoch.valid) continue;
    const double found = epoch.valid->find(metric).value();
    const bool gain = found > largest;
    waited = gain ? 0 : waited + 1;
    if (gain) best = epoch.epoch, largest = found;
    if (patience > 0 && waited == patience) return {best, epoch.epoch};
  }
  return {best, 0};
}

TEST(Trainer, EvaluatesWhenDueKeepsTheBestAndStopsEarly) {
  const auto problem = small_problem(60, 5, 3, 20);
  const Grid grid(test_world(), 1);
  bool best_was_not_last = false, stopped = false;
  for (const std::int64_t every : {1, 2, 0}) {
    auto config = noisy_config();
    config.train.eval_every = every;
    const auto whole = train(grid, problem, config);
    for (const std::int64_t patience : {0, 1, 2, 3}) {
      SCOPED_TRACE(fmt::format("every {} patience {}", every, patience));
      config.train.early_stop = patience;
      const auto run = train(grid, problem, config);
      for (const auto& epoch : run.epochs)
        EXPECT_EQ(epoch.valid.has_value(), epoch.epoch == 9 || (every > 0 && epoch.epoch % every == 0))
            << epoch.epoch;
      const auto [best, stop] = plain_best(whole.epochs, patience);
      EXPECT_EQ(run.result.best_epoch, best);
      EXPECT_EQ(std::ssize(run.epochs), stop > 0 ? stop : 9);
      if (stop < 9) EXPECT_EQ(run.result.stopped_early, stop > 0);
      EXPECT_TRUE(same_weights(run.last, whole.weights[static_cast<std::size_t>(best - 1)]));
      EXPECT_EQ(run.result.test.value().find("accuracy"), run.evaluation_of_last.test.find("accuracy"));
      EXPECT_EQ(run.evaluation_of_last.valid.find("accuracy"),
                whole.epochs[static_cast<std::size_t>(best - 1)].valid.value().find("accuracy"));
      best_was_not_last |= best < std::ssize(run.epochs) && !same_weights(run.last, run.weights.back());
      stopped |= stop > 0 && stop < 9;
    }
  }
  EXPECT_TRUE(best_was_not_last) << "the case must have told something";
  EXPECT_TRUE(stopped);
}

TEST(Trainer, TheConfigChoosesTheMetricThatBestIsJudgedBy) {
  const Grid grid(test_world(), 1);
  bool differed = false;
  for (const std::uint64_t seed : {20, 21, 22, 23}) {
    auto config = noisy_config();
    config.train.metric = "macro_f1";
    const auto run = train(grid, small_problem(60, 5, 3, seed), config);
    const auto best = plain_best(run.epochs, 0, "macro_f1").first;
    EXPECT_EQ(run.result.best_epoch, best) << seed;
    EXPECT_TRUE(same_weights(run.last, run.weights[static_cast<std::size_t>(best - 1)]));
    differed |= best != plain_best(run.epochs, 0).first;
  }
  EXPECT_TRUE(differed) << "the case must have told something";
}

TEST(Trainer, WithoutValidationTheLastWeightsStay) {
  auto problem = small_problem(60, 5, 3, 20);
  problem.valid.clear();
  auto config = noisy_config();
  config.train.early_stop = 1;
  const auto run = train(Grid(test_world(), 1), problem, config);
  EXPECT_EQ(run.result.best_epoch, 9);
  EXPECT_FALSE(run.epochs.back().valid.has_value());
  EXPECT_TRUE(same_weights(run.last, run.weights.back()));
}

// What diverged, where, is the same on every rank and grid; no weight that stays and no score is
// not finite.
TEST(Trainer, AtNumbersThatAreNotFiniteItSaysWhereAndTheBestWeightsStay) {
  const auto problem = small_problem(60, 5, 3, 20);
  const auto is_finite = [](const TensorsOf<float>& weights) {
    return std::ranges::all_of(weights, [](const auto& tensor) {
      return std::ranges::all_of(tensor.data, [](float x) { return std::isfinite(x); });
    });
  };
  // One step and an evaluation; steps that multiply the weights by -999; gradients that overflow.
  struct Case {
    double rate, decay;
    std::int64_t epochs;
    std::vector<std::string> what;
    bool none_before;
  };
  for (const auto& [rate, decay, epochs, what, none_before] :
       {Case{1e38, 0, 1, {"evaluation", "weight", "gradient"}, true},
        Case{1, 1e3, 30, {"evaluation", "weight", "gradient", "loss"}, false},
        Case{1e30, 0, 3, {"evaluation", "gradient", "loss"}, true}})
    for (const int c : divisors(test_world().size())) {
      SCOPED_TRACE(fmt::format("rate {} decay {} c {}", rate, decay, c));
      auto config = config_of("sage", "none");
      config.train.learning_rate = rate;
      config.train.weight_decay = decay;
      config.train.epochs = epochs;
      const auto run = train_to_divergence(Grid(test_world(), c), problem, config);
      const auto& diverged = run.result.diverged;
      ASSERT_TRUE(diverged.has_value());  // on every rank
      EXPECT_EQ(diverged->epoch, std::ssize(run.epochs) + 1);
      EXPECT_NE(std::ranges::find(what, diverged->what), what.end()) << diverged->what;
      EXPECT_NE(diverged->words.find(fmt::format(" is not finite in epoch {}", diverged->epoch)),
                std::string::npos);
      EXPECT_NE(diverged->words.find("; lower train."), std::string::npos) << diverged->words;
      EXPECT_EQ(run.result.best_epoch == 0, none_before);
      for (const auto& epoch : run.epochs) EXPECT_TRUE(std::isfinite(*epoch.loss));
      if (none_before) continue;
      EXPECT_EQ(run.result.best_epoch, plain_best(run.epochs, 0).first);
      EXPECT_TRUE(is_finite(run.last));
      EXPECT_TRUE(same_weights(run.last, run.weights[static_cast<std::size_t>(run.result.best_epoch - 1)]));
      EXPECT_TRUE(run.result.test.has_value());
    }
}

}  // namespace
}  // namespace espalier
