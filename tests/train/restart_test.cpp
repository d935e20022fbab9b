// ranks: 1 4
// long ranks: 2 3
// Laws: an evaluation that is given up between two chunks is made again by a new trainer, from the
// bytes of a checkpoint, to the last bit; saving at every moment changes nothing, and each is one
// to go on from; moments are asked for once each. A state of another network is refused. (Trainings
// that are left at every moment and gone on with on other grids, with steps of any size and by
// other schedules: tests/app/restart_test.py.)
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "espalier/train/checkpoint.hpp"
#include "mpi_test.hpp"
#include "train/checkpoint_bytes.hpp"
#include "train/small_training.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

struct Layout {
  std::int64_t bulk = 1000;
  std::int64_t depth = 0;  // steps whose rows are under way beside one that computes; 0: no overlap
};

// What is to come out of training, however often it was left.
struct Outcome {
  std::vector<EpochReport> epochs;
  TensorsOf<float> weights;
  std::uint64_t digest = 0;
  std::int64_t best_epoch = 0;
  std::optional<Metrics> test;
  bool stopped_early = false;
};

using Asked = std::function<Next(const Cursor&, std::int64_t steps, bool last)>;

// Some training from a checkpoint (its bytes; empty: from the beginning) to its end, or to where
// `next` stops it.
struct Leg {
  Outcome outcome;
  std::optional<Cursor> interrupted;
  std::vector<Cursor> moments;     // where `next` was asked
  std::vector<std::string> saved;  // bytes of checkpoints
};

struct Training {
  SmallProblem problem;
  Config config;
  std::int64_t batches_per_step = kStep;
};

Leg train_on(const Training& training, const Layout& layout, const std::string& from, const Asked& next,
             const std::function<bool()>& goes_on = {}) {
  const auto& ranks = test_world();
  Leg leg;
  auto config = training.config;
  config.run.overlap = layout.depth > 0;
  config.run.prefetch_steps = layout.depth;
  const Grid grid(ranks, 1);
  std::optional<Grid> beside;
  if (config.run.overlap) beside.emplace(ranks.duplicate(), 1);
  std::optional<SampleAhead> ahead;
  if (beside) ahead.emplace(beside->world());
  const SmallJob job(grid, training.problem, config.model.kind, config.sampler.fanout, 1 << 20,
                     Topology::kPartitioned, beside ? &*beside : nullptr);
  Trainer trainer(Cpu{1}, {grid, config, *job.sampler, job.input, *job.task, job.evaluator, layout.bulk,
                           training.batches_per_step, ahead ? &*ahead : nullptr});
  auto& epochs = leg.outcome.epochs;
  std::int64_t resumed_step = 0;
  if (!from.empty()) {
    const auto checkpoint = checkpoint_from(ranks, from);
    epochs = checkpoint.epochs;
    resumed_step = checkpoint.state.cursor.step;
    trainer.restore(checkpoint.state);
  }
  const auto result = trainer.train({.on_epoch =
                                         [&](const EpochReport& epoch) {
                                           epochs.push_back(epoch);
                                           EXPECT_EQ(epoch.resumed_step, resumed_step);
                                           resumed_step = 0;
                                         },
                                     .next =
                                         [&](const Cursor& cursor, std::int64_t steps, bool last) {
                                           leg.moments.push_back(cursor);
                                           return next ? next(cursor, steps, last) : Next::kGoOn;
                                         },
                                     .save =
                                         [&](const TrainingState& state) {
                                           leg.saved.push_back(checkpoint_bytes(
                                               ranks, {{}, state, epochs, config.train.seed, grid.ranks()}));
                                         },
                                     .goes_on = goes_on});
  leg.interrupted = result.interrupted;
  leg.outcome.weights = weights_of(trainer.network());
  leg.outcome.digest = trainer.weights_digest();
  leg.outcome.best_epoch = result.best_epoch;
  leg.outcome.test = result.test;
  leg.outcome.stopped_early = result.stopped_early;
  return leg;
}

void expect_equal_outcomes(const Outcome& a, const Outcome& b) {
  EXPECT_TRUE(same_weights(a.weights, b.weights));
  EXPECT_EQ(a.digest, b.digest);
  EXPECT_EQ(a.best_epoch, b.best_epoch);
  EXPECT_EQ(a.stopped_early, b.stopped_early);
  EXPECT_EQ(a.test, b.test);
  ASSERT_EQ(a.epochs.size(), b.epochs.size());
  for (std::size_t e = 0; e < a.epochs.size(); ++e) {
    SCOPED_TRACE(fmt::format("epoch {}", e + 1));
    EXPECT_EQ(a.epochs[e].epoch, b.epochs[e].epoch);
    EXPECT_EQ(a.epochs[e].loss.value(), b.epochs[e].loss.value());
    EXPECT_EQ(a.epochs[e].counts.digest, b.epochs[e].counts.digest);
    EXPECT_EQ(a.epochs[e].counts.batches, b.epochs[e].counts.batches);
    EXPECT_EQ(a.epochs[e].counts.sampled_edges, b.epochs[e].counts.sampled_edges);
    EXPECT_EQ(a.epochs[e].counts.input_rows, b.epochs[e].counts.input_rows);
    EXPECT_EQ(a.epochs[e].valid, b.epochs[e].valid);
  }
}

// The answer at the k-th moment (from 0) of a leg, going on at the others.
Asked at_moment(std::size_t k, Next answer) {
  return [k, answer, moment = std::size_t{0}](const Cursor&, std::int64_t, bool) mutable {
    return moment++ == k ? answer : Next::kGoOn;
  };
}

Layout layout_of(std::int64_t bulk, std::int64_t depth) {
  return {bulk, threads_may_communicate() ? depth : 0};
}

Training small_case(const std::string& optimizer, const std::string& normalize) {
  Training training{small_problem(66, 5, 3, 20), config_of("sage", normalize)};
  training.config.train.optimizer = optimizer;
  training.config.train.epochs = 3;
  training.config.train.learning_rate = optimizer == "adam" ? 0.03 : 0.3;
  return training;
}

// The problem has one chunk per layer, so each evaluation is asked three times. Of the two depths
// with overlap one takes the even moments, one the odd ones.
TEST(Restart, AnEvaluationIsGivenUpBetweenTwoChunksAndMadeAgain) {
  auto training = small_case("adam", "batch");
  training.config.train.epochs = 2;
  for (const int depth : {0, 1, 3}) {
    const auto layout = layout_of(2, depth);
    const auto whole = train_on(training, layout, "", {});
    for (int k = 0; k < 5; ++k) {
      if (depth > 0 && k % 2 != depth / 2) continue;
      SCOPED_TRACE(fmt::format("given up at moment {}{}", k, depth > 0 ? ", overlap" : ""));
      int asked = 0;
      const auto first = train_on(training, layout, "", {}, [&] { return asked++ != k; });
      EXPECT_EQ(asked, k + 1) << "it goes no further";
      ASSERT_TRUE(first.interrupted.has_value());
      EXPECT_EQ(first.interrupted->epoch, 1 + k / 3);
      EXPECT_GT(first.interrupted->step, 0);
      const auto again = train_on(training, layout, first.saved.at(0), {}, [] { return false; });
      EXPECT_TRUE(again.interrupted == first.interrupted) << "given up once more, with no step between";
      const auto rest = train_on(training, layout, again.saved.at(0), {});
      expect_equal_outcomes(rest.outcome, whole.outcome);
    }
  }
}

TEST(Restart, SavingAtEveryMomentChangesNothingAndEachIsOneToGoOnFrom) {
  for (const bool overlap : {false, true}) {
    auto training = small_case("adam", "batch");
    training.config.train.epochs = 2;
    const auto layout = layout_of(2, overlap);
    SCOPED_TRACE(fmt::format("{} ahead", layout.depth));
    const auto whole = train_on(training, layout, "", {});
    const auto saving =
        train_on(training, layout, "", [](const Cursor&, std::int64_t, bool) { return Next::kSave; });
    EXPECT_FALSE(saving.interrupted);
    EXPECT_EQ(saving.saved.size(), whole.moments.size());
    expect_equal_outcomes(saving.outcome, whole.outcome);
    for (std::size_t e = 0; e < whole.outcome.epochs.size(); ++e)
      for (const auto& [stage, volume] : whole.outcome.epochs[e].bytes)
        EXPECT_EQ(saving.outcome.epochs.at(e).bytes.at(stage).total, volume.total)
            << stage << " moves no more";
    for (std::size_t k = 0; k < saving.saved.size(); k += overlap ? 3 : 1)
      expect_equal_outcomes(train_on(training, layout, saving.saved[k], {}).outcome, whole.outcome);
  }
}

TEST(Restart, MomentsAreAskedForOnceEachAndTheLastIsKnown) {
  const auto training = small_case("sgd", "none");
  std::vector<Cursor> expected, asked;
  const auto batches = count_batches(std::ssize(training.problem.train), 4);
  const auto steps_of_epoch = count_batches(batches, kStep);
  for (std::int64_t epoch = 1; epoch <= 3; ++epoch) {
    for (std::int64_t step = 1; step <= steps_of_epoch; ++step) expected.push_back({epoch, step});
    expected.push_back({epoch + 1, 0});
  }
  train_on(training, {}, "", [&](const Cursor& cursor, std::int64_t steps, bool last) {
    asked.push_back(cursor);
    if (cursor.step > 0) EXPECT_EQ(steps, steps_of_epoch);
    EXPECT_EQ(last, cursor == (Cursor{4, 0}));
    return Next::kGoOn;
  });
  EXPECT_TRUE(asked == expected);
}

TEST(Restart, AnEpochThatWasBegunIsFinishedThoughPatienceHasBecomeShorter) {
  auto training = small_case("sgd", "batch");
  training.config.train.epochs = 12;
  training.config.train.learning_rate = 0.5;
  const Layout layout;
  std::string saved;  // within the epoch after a first evaluation without a gain
  const auto all = train_on(training, layout, "", [](const Cursor& cursor, std::int64_t, bool) {
    return cursor.step == 1 ? Next::kSave : Next::kGoOn;
  });
  for (const auto& bytes : all.saved)
    if (saved.empty() && checkpoint_from(test_world(), bytes).state.evaluations_without_gain == 1)
      saved = bytes;
  EXPECT_FALSE(saved.empty());
  training.config.train.early_stop = 1;
  const auto leg = train_on(training, layout, saved, {});
  const auto begun = checkpoint_from(test_world(), saved).state.cursor.epoch;
  EXPECT_GE(leg.outcome.epochs.size(), static_cast<std::size_t>(begun)) << "with its evaluation";
}

// A state that `config` made, and `change` changed, restored by a trainer of `training`: the
// network then.
TensorsOf<float> restored(const Training& training, const Config& config,
                          const std::function<void(TrainingState&)>& change) {
  auto other = training;
  other.config = config;
  const auto saved = train_on(other, {}, "", at_moment(5, Next::kSaveAndStop)).saved.at(0);
  auto state = checkpoint_from(test_world(), saved).state;
  if (change) change(state);
  const Grid grid(test_world(), 1);
  const SmallJob job(grid, training.problem, training.config.model.kind, training.config.sampler.fanout,
                     1 << 20);
  Trainer trainer(Cpu{1},
                  {grid, training.config, *job.sampler, job.input, *job.task, job.evaluator, 5, kStep});
  trainer.restore(state);
  return weights_of(trainer.network());
}

// What restore says of it.
std::string refusal_of_restart(const Training& training, const Config& config,
                               const std::function<void(TrainingState&)>& change = {}) {
  return message_of(ExitCode::kInput, [&] { restored(training, config, change); });
}

TEST(Restart, AStateOfAnotherNetworkIsRefused) {
  const auto training = small_case("adam", "batch");
  EXPECT_EQ(refusal_of_restart(training, training.config), "");
  auto config = training.config;
  config.model.hidden = 7;
  expect_words(refusal_of_restart(training, config),
               {"weights/", "7 in the checkpoint", "6 in this network"});
  config = training.config;
  config.model.normalize = "none";
  expect_words(refusal_of_restart(training, config), {"the checkpoint has no", "another kind of network"});
  config = training.config;
  config.train.optimizer = "sgd";
  expect_words(refusal_of_restart(training, config), {"the checkpoint has no optimizer/"});
  const auto without = [&](const std::string& beginning) {
    return refusal_of_restart(training, training.config, [&](TrainingState& state) {
      EXPECT_GT(std::erase_if(state.tensors,
                              [&](const auto& tensor) { return tensor.name.starts_with(beginning); }),
                0u);
    });
  };
  for (const char* beginning : {"weights/", "statistics/", "optimizer/", "best/weights/", "best/statistics/"})
    expect_words(without(beginning), {std::string("the checkpoint has no ") + beginning});
}

TEST(Restart, StatisticsOfBatchNormalisationHaveNamesAndTheNumbersOfEarlierVersionsAreFound) {
  const auto training = small_case("adam", "batch");
  const std::map<std::string, std::string> former = {
      {"layer1.mean", "0"}, {"layer1.variance", "1"}, {"layer2.mean", "2"}, {"layer2.variance", "3"}};
  std::set<std::string> names;
  const auto number_them = [&](TrainingState& state) {
    for (auto& tensor : state.tensors)
      if (const auto at = tensor.name.find("statistics/"); at != std::string::npos) {
        names.insert(tensor.name);
        tensor.name = tensor.name.substr(0, at + 11) + former.at(tensor.name.substr(at + 11));
      }
  };
  const auto now = restored(training, training.config, {});
  EXPECT_TRUE(same_weights(restored(training, training.config, number_them), now));
  EXPECT_EQ(names.size(), 8u) << "of now and of the best epoch";
  EXPECT_FALSE(same_weights(restored(training, training.config,
                                     [](TrainingState& state) {
                                       for (auto& tensor : state.tensors)
                                         if (tensor.name == "statistics/layer2.mean")
                                           tensor.read = [read = tensor.read](RowRange rows, float* to) {
                                             read(rows, to);
                                             to[0] += 1;
                                           };
                                     }),
                            now))
      << "the comparison sees statistics";
}

}  // namespace
}  // namespace espalier
