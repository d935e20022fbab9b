// ranks: 1 3
// Laws: all ranks save and stop at the same step, by rank 0's clock and by a signal to any one of
// them; checkpoints come by epochs and by minutes since the last one that was written; with
// run.max_minutes nothing is begun that would not end, saved, before the limit, and what would is;
// the end of training is no moment to stop at.
//
// The notes of signals are for a process's life: the tests of signals to stop stand last.
#include "espalier/train/save_policy.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "espalier/base/clock.hpp"
#include "espalier/base/signals.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

double fake_seconds = 0;

// Time passes by charge() only, and beyond rank 0 a thousand times as fast.
class SavePolicyTest : public testing::Test {
 protected:
  const StepsUnderWay steps_under_way_;
  void SetUp() override {
    watch_signals();
    fake_seconds = 12345;
    const double speed = test_world().rank() == 0 ? 1 : 1000;
    set_clock({[speed] { return speed * fake_seconds; }, [](double seconds) { fake_seconds += seconds; }});
  }
};

// The answer, which must be everyone's.
Next ask(SavePolicy& policy, const Cursor& cursor, std::int64_t steps, bool last = false) {
  const auto answer = policy.next(cursor, steps, last);
  const auto all = test_world().all_gather(static_cast<int>(answer), "test");
  for (const int one : all) EXPECT_EQ(one, static_cast<int>(answer)) << "of one of the ranks";
  return answer;
}

constexpr std::int64_t kSteps = 4;  // of an epoch

// Seconds that training takes for each.
struct Pace {
  double step = 1, epoch_end = 1, save = 1;
};

struct Simulated {
  std::vector<Cursor> saved;
  bool stopped = false;
  Cursor end;
  double seconds = 0;  // when the last checkpoint was written or training ended
};

// Training from `cursor` as the trainer does it.
Simulated simulate(const RunConfig& run, const Pace& pace, std::int64_t epochs, Cursor cursor = {1, 0},
                   bool goes_on = false) {
  SavePolicy policy(test_world(), run, goes_on);
  Simulated training;
  while (cursor.epoch <= epochs && !training.stopped) {
    const bool ends = cursor.step == kSteps;
    charge(ends ? pace.epoch_end : pace.step);
    cursor = ends ? Cursor{cursor.epoch + 1, 0} : Cursor{cursor.epoch, cursor.step + 1};
    const auto answer = ask(policy, cursor, ends ? 0 : kSteps, cursor.epoch > epochs);
    if (answer != Next::kGoOn) {
      charge(pace.save);
      policy.saved(pace.save);
      training.saved.push_back(cursor);
    }
    training.stopped = answer == Next::kSaveAndStop;
  }
  training.end = cursor;
  training.seconds = test_world().rank() == 0 ? seconds_since_start() : 0;
  test_world().broadcast(std::span(&training.seconds, 1), 0, "test");
  return training;
}

// Of a run that asks for no checkpoint.
RunConfig unasked() {
  RunConfig run;
  run.checkpoint_minutes = 0;
  return run;
}

TEST_F(SavePolicyTest, SavesNothingUnasked) {
  const auto training = simulate(unasked(), {}, 3);
  EXPECT_TRUE(training.saved.empty());
  EXPECT_FALSE(training.stopped);
}

TEST_F(SavePolicyTest, SavesTheEndOfWhatWentOnFromACheckpoint) {
  EXPECT_TRUE(simulate({}, {}, 3, {2, 1}, true).saved == (std::vector<Cursor>{{4, 0}}));
}

TEST_F(SavePolicyTest, SavesByEpochsAndTheEnd) {
  RunConfig run;
  run.checkpoint_every = 1;
  EXPECT_TRUE(simulate(run, {}, 3).saved == (std::vector<Cursor>{{2, 0}, {3, 0}, {4, 0}}));
  run.checkpoint_every = 3;
  EXPECT_TRUE(simulate(run, {}, 8).saved == (std::vector<Cursor>{{4, 0}, {7, 0}, {9, 0}}));
  EXPECT_TRUE(simulate(run, {}, 8, {5, 2}).saved == (std::vector<Cursor>{{7, 0}, {9, 0}}))
      << "counted from the first epoch";
}

TEST_F(SavePolicyTest, SavesByMinutesSinceTheLastCheckpoint) {
  RunConfig run;
  run.checkpoint_minutes = 1;
  // Steps of 25 s, 4 in an epoch, 10 s for its end: the first moment 60 s after the start is step
  // 3; writing takes 100 s, which do not count.
  const auto training = simulate(run, {25, 10, 100}, 2);
  EXPECT_TRUE(training.saved == (std::vector<Cursor>{{1, 3}, {2, 1}, {2, 4}, {3, 0}}));
}

TEST_F(SavePolicyTest, ACheckpointThatWasNotWrittenIsAskedForAgain) {
  RunConfig run;
  run.checkpoint_minutes = 1;
  SavePolicy policy(test_world(), run, false);
  charge(59.5);
  EXPECT_EQ(ask(policy, {1, 1}, kSteps), Next::kGoOn);
  charge(1);
  EXPECT_EQ(ask(policy, {1, 2}, kSteps), Next::kSave);
  EXPECT_EQ(ask(policy, {1, 3}, kSteps), Next::kSave);
  policy.saved(1);
  EXPECT_EQ(ask(policy, {1, 4}, kSteps), Next::kGoOn);
}

TEST_F(SavePolicyTest, MaxMinutesIsKeptWithTheSlowestStepAndTheCheckpointAsMargin) {
  // Epochs of 4 x 10 + 90 s and a checkpoint: when the first has been written all paces are known.
  bool within_an_epoch = false, before_its_end = false;
  for (const Pace pace : {Pace{10, 90, 7}, {10, 90, 100}})
    for (double limit = 160 + 3 * pace.save; limit < 900; limit += 7) {
      SCOPED_TRACE(fmt::format("limit {} s, {} s for a checkpoint", limit, pace.save));
      SetUp();
      RunConfig run;
      run.checkpoint_every = 1;
      run.max_minutes = limit / 60;
      const auto training = simulate(run, pace, 100);
      EXPECT_TRUE(training.stopped);
      EXPECT_LE(training.seconds, limit) << "never beyond the limit";
      const bool at_end = training.end.step == kSteps;
      const double next = at_end ? pace.epoch_end : pace.step;
      const double due = training.end.step == 0 ? pace.save : 0;
      EXPECT_GT(training.seconds - pace.save + due + 1.5 * (next + pace.save), limit - 1e-6)
          << "what would fit is begun";
      within_an_epoch |= !at_end;
      before_its_end |= at_end;
    }
  EXPECT_TRUE(within_an_epoch && before_its_end) << "the limits must have told something";
}

TEST_F(SavePolicyTest, EvenALimitInThePastLetsOneStepBeDone) {
  RunConfig run;
  run.max_minutes = 1e-9;
  const auto training = simulate(run, {}, 5);
  EXPECT_TRUE(training.end == (Cursor{1, 1})) << "or jobs of short limits would never end";
  EXPECT_TRUE(training.saved == (std::vector<Cursor>{{1, 1}}));
  SavePolicy policy(test_world(), run, false);
  charge(1);
  EXPECT_EQ(ask(policy, {1, 1}, kSteps), Next::kSaveAndStop);
  EXPECT_EQ(policy.reason(), "run.max_minutes = 1e-09");
}

TEST_F(SavePolicyTest, AnEvaluationGoneOnWithIsNoStep) {
  RunConfig run;
  run.max_minutes = 10;
  // Goes on where an epoch was yet to be evaluated, which takes 300 s: after it, half of the time
  // is there for steps of 10 s.
  const auto training = simulate(run, {10, 300, 1}, 9, {1, kSteps}, true);
  EXPECT_TRUE(training.end == (Cursor{2, kSteps})) << training.end.epoch << " " << training.end.step;
}

TEST_F(SavePolicyTest, TimeGivesAnEvaluationUpWhereSomethingWasDoneBeforeIt) {
  RunConfig run;
  run.max_minutes = 1;
  set_clock({[] { return fake_seconds; }, [](double seconds) { fake_seconds += seconds; }});
  SavePolicy policy(test_world(), run, true);
  charge(3600);
  EXPECT_TRUE(policy.goes_on()) << "or a chain of short runs would never arrive";
  EXPECT_EQ(ask(policy, {2, 0}, 0), Next::kSaveAndStop);
  EXPECT_FALSE(policy.goes_on());
  EXPECT_EQ(policy.reason(), "run.max_minutes = 1");
}

TEST_F(SavePolicyTest, AnEvaluationGoesOnWithinItsTimeAndWithoutALimit) {
  RunConfig run;
  run.max_minutes = 1;
  SavePolicy limited(test_world(), run, true), unlimited(test_world(), {}, true);
  EXPECT_EQ(ask(limited, {1, 1}, kSteps), Next::kGoOn);
  EXPECT_EQ(ask(unlimited, {1, 1}, kSteps), Next::kGoOn);
  EXPECT_TRUE(limited.goes_on());
  charge(3600);
  EXPECT_FALSE(limited.goes_on());
  EXPECT_TRUE(unlimited.goes_on());
}

TEST_F(SavePolicyTest, TheEndOfTrainingIsNoMomentToStopAt) {
  RunConfig run;
  run.max_minutes = 1;
  SavePolicy policy(test_world(), run, false);
  charge(1000);
  EXPECT_NE(ask(policy, {4, 0}, 0, true), Next::kSaveAndStop);
}

TEST_F(SavePolicyTest, SIGUSR1ToOneRankSavesOnceOnAllAndGoesOn) {
  for (int rank = 0; rank < test_world().size(); ++rank) {
    SCOPED_TRACE(fmt::format("to rank {}", rank));
    const auto run = unasked();
    SavePolicy policy(test_world(), run, false);
    EXPECT_EQ(ask(policy, {1, 1}, kSteps), Next::kGoOn);
    if (test_world().rank() == rank) raise(SIGUSR1);
    EXPECT_TRUE(policy.goes_on()) << "no reason to give an evaluation up, nor forgotten by its end";
    EXPECT_EQ(ask(policy, {1, 2}, kSteps), Next::kSave);
    EXPECT_EQ(ask(policy, {1, 3}, kSteps), Next::kGoOn);
    EXPECT_EQ(ask(policy, {2, 0}, 0, true), Next::kGoOn) << "nothing was written";
    if (test_world().rank() == rank) raise(SIGUSR1);
    EXPECT_EQ(ask(policy, {2, 0}, 0, true), Next::kSave);
    policy.saved(1);
    EXPECT_EQ(ask(policy, {2, 0}, 0, true), Next::kSave) << "the end too, where there is a checkpoint";
  }
}

TEST_F(SavePolicyTest, TheTimeOfAnotherRankThanTheFirstIsNotAsked) {
  RunConfig run;
  run.max_minutes = run.checkpoint_minutes = 1;
  SavePolicy policy(test_world(), run, false);
  charge(10);  // 10000 s elsewhere
  EXPECT_EQ(ask(policy, {1, 1}, kSteps), Next::kGoOn);
}

// From here on this process has been asked to stop.
TEST_F(SavePolicyTest, ZASignalToTheLastRankStopsAllAtTheSameStep) {
  SavePolicy policy(test_world(), {}, false);
  EXPECT_EQ(ask(policy, {1, 1}, kSteps), Next::kGoOn);
  EXPECT_TRUE(policy.goes_on());
  const bool chosen = test_world().rank() == test_world().size() - 1;
  if (chosen) raise(SIGTERM);
  if (chosen) raise(SIGUSR1);
  EXPECT_FALSE(policy.goes_on()) << "an evaluation is given up on every rank";
  EXPECT_EQ(policy.reason(), "SIGTERM");
  EXPECT_EQ(ask(policy, {1, 2}, kSteps), Next::kSaveAndStop);
  EXPECT_EQ(policy.reason(), "SIGTERM") << "on every rank";
  EXPECT_EQ(ask(policy, {1, 3}, kSteps), Next::kSaveAndStop) << "a wish to stop stays";
  EXPECT_EQ(ask(policy, {2, 0}, 0, true), Next::kSave) << "but the end is no moment to stop at";
}

TEST_F(SavePolicyTest, ZTwoSignalsToTwoRanksGiveOneReason) {
  RunConfig run;
  run.max_minutes = 1;
  SavePolicy policy(test_world(), run, false);
  charge(1000);
  if (test_world().rank() == 0) raise(SIGUSR2);
  EXPECT_EQ(ask(policy, {1, 1}, kSteps), Next::kSaveAndStop);
  const auto reason = policy.reason();
  EXPECT_EQ(test_world().broadcast_text(reason, 0, "test"), reason);
  EXPECT_TRUE(reason == "SIGTERM" || reason == "SIGUSR2") << reason;
}

}  // namespace
}  // namespace espalier
