// Laws: where nothing moves for the given time the watchdog says once where the process is, each
// thread's stage and collective, and after as long again ends the job with code 1; in steps only
// the end of a step keeps it quiet, before them every note does; 0 minutes watch nothing; it ends
// with its owner, at once; a hanging writer of stderr does not stop it.
#include "espalier/base/watchdog.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "espalier/base/clock.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/signals.hpp"
#include "forked_threads.hpp"

namespace espalier {
namespace {

constexpr double kLimit = 0.005;  // minutes: 0.3 s

void be_a_rank() {
  failure_context().rank = 3;
  failure_context().host = "node7";
  failure_context().abort_job = nullptr;  // the child of a death test must not end the test's job
}

void stall_in_a_collective() {
  be_a_rank();
  note_step(3, 41, 117);
  StageTimers timers;
  const StageTimers::Scope total(timers, "total");
  const StageTimers::Scope fetch(timers, "fetch");
  const InCollective collective("all-to-all-v", "fetch/rows", 4);
  const Watchdog watchdog(kLimit);
  sleep(60);
  std::_Exit(0);
}

void stall_after_a_collective() {
  be_a_rank();
  note_step(1, 1, 2);
  note_stage("total/forward");
  { const InCollective collective("all-reduce", "reduce", 2); }
  const Watchdog watchdog(kLimit);
  sleep(60);
  std::_Exit(0);
}

// The thread that samples hangs, the main thread waits for it outside of any collective.
void stall_on_a_second_thread() {
  be_a_rank();
  note_step(2, 5, 9);
  note_stage("total/sample");
  std::thread sampling([] {
    const InCollective collective("all-gather", "sample/ids", 6);
    sleep(60);
  });
  const Watchdog watchdog(kLimit);
  sleep(60);
  std::_Exit(0);
}

void move_for_some_time(void (*note)(), bool in_steps, double limit, int rounds) {
  be_a_rank();
  if (in_steps) note_step(1, 1, 2);
  const Watchdog watchdog(limit);
  for (int k = 0; k < rounds; ++k) {
    usleep(50000);
    note();
  }
  std::_Exit(0);
}

// For 2 s, in which a watchdog that waits for 1.5 s would speak.
void move(void (*note)(), bool in_steps) {
  move_for_some_time(note, in_steps, 5 * kLimit, 40);
}

void note_collective() {
  const InCollective collective("barrier", "setup", 2);
}

// Each in a process of its own, all at the same time.
void move_in_every_way() {
  const auto start = [](void (*note)(), bool in_steps) {
    if (fork() == 0) move(note, in_steps);
  };
  start(note_progress, true);
  start(note_movement, false);
  start([] { note_activity("reading"); }, false);
  start(note_collective, false);
  int ended = 0, well = 0;
  for (int status; wait(&status) > 0; ++ended) well += status == 0;
  std::_Exit(ended == 4 && well == 4 ? 0 : 1);
}

// Quiet until it was told of, twice, and never ended.
void stall_and_go_on() {
  be_a_rank();
  note_step(1, 1, 2);
  int ends[2];
  const int real = dup(STDERR_FILENO);
  if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0) std::_Exit(1);
  const Watchdog watchdog(5 * kLimit);  // 1.5 s
  for (int k = 0; k < 2; ++k) {
    for (char letter = 0; letter != '\n';)
      if (read(ends[0], &letter, 1) != 1 || write(real, &letter, 1) != 1) std::_Exit(1);
    note_progress();
  }
  std::_Exit(0);
}

void watch_nothing() {
  be_a_rank();
  const Watchdog watchdog(0);
  usleep(300000);
  std::_Exit(0);
}

class WatchdogTest : public testing::Test {
 protected:
  void SetUp() override { testing::GTEST_FLAG(death_test_style) = "fast"; }
};

// Those in which the child's watchdog watches, which takes a thread.
class WatchedTest : public WatchdogTest {
 protected:
  void SetUp() override {
    WatchdogTest::SetUp();
    ESPALIER_SKIP_WITHOUT_FORKED_THREADS();
  }
};

const std::string kLimitOrMore = "0\\.0(0[5-9]|[1-9])[0-9]*";

// The line of where a process is, once, and the line with which it ends, with the time each took.
std::string told_once(const std::string& place) {
  return "^espalier: rank 3 on node7: no step has finished for " + kLimitOrMore + " minutes: " + place +
         "\nespalier: rank 3 on node7: no step has finished for 0\\.0[0-9]* minutes \\(run.stall_minutes = "
         "0.005\\); the job ends[^\n]*\n$";
}

TEST_F(WatchedTest, SaysWhereTheProcessIsOnceAndEndsTheJob) {
  EXPECT_EXIT(stall_in_a_collective(), testing::ExitedWithCode(1),
              told_once("epoch 3, step 41 of 117, stage total/fetch, inside of all-to-all-v \"fetch/rows\" "
                        "of 4 ranks for [0-9]+ s"));
  EXPECT_EXIT(
      stall_after_a_collective(), testing::ExitedWithCode(1),
      told_once(
          "epoch 1, step 1 of 2, stage total/forward, out of all-reduce \"reduce\" of 2 ranks for [0-9]+ s"));
}

TEST_F(WatchedTest, SaysItOfEachThread) {
  EXPECT_EXIT(stall_on_a_second_thread(), testing::ExitedWithCode(1),
              "stage total/sample, [^\n]*\nespalier: rank 3[^\n]*inside of all-gather "
              "\"sample/ids\" of 6 ranks");
}

TEST_F(WatchedTest, MovementKeepsItQuiet) {
  EXPECT_EXIT(move_in_every_way(), testing::ExitedWithCode(0), "^$");
}

TEST_F(WatchedTest, InStepsOnlyTheirEndIsProgress) {
  EXPECT_EXIT(move_for_some_time(note_collective, true, kLimit, 200), testing::ExitedWithCode(1),
              "no step has finished for");
}

void stall_while_reading() {
  be_a_rank();
  note_activity("reading the features");
  note_consequence("the same command goes on from its checkpoint");
  const Watchdog watchdog(kLimit, "--stall-minutes");
  sleep(60);
  std::_Exit(0);
}

TEST_F(WatchedTest, BeforeStepsItSaysWhatWasBeingDone) {
  EXPECT_EXIT(stall_while_reading(), testing::ExitedWithCode(1),
              "^espalier: rank 3 on node7: nothing has moved for " + kLimitOrMore +
                  " minutes: reading the "
                  "features[^\n]*\nespalier: rank 3 on node7: nothing has moved for 0\\.0[0-9]* minutes "
                  "\\(--stall-minutes = 0.005\\); the job ends; the same command goes on from its "
                  "checkpoint\n$");
}

// Another thread hangs in a write to stderr, and keeps its lock.
void stall_with_stderr_locked() {
  be_a_rank();
  flockfile(stderr);
  std::thread([] { std::fputs("never said", stderr); }).detach();
  std::thread([] {
    const Watchdog watchdog(kLimit);
    sleep(60);
  }).join();
}

TEST_F(WatchedTest, NeedsNoLockOfStderr) {
  EXPECT_EXIT(stall_with_stderr_locked(), testing::ExitedWithCode(1), "the job ends\n$");
}

TEST_F(WatchedTest, SaysItAgainAfterAnotherStall) {
  EXPECT_EXIT(stall_and_go_on(), testing::ExitedWithCode(0),
              "^(espalier: rank 3[^\n]*no step has finished[^\n]*\n){2}$");
}

TEST_F(WatchdogTest, NoMinutesWatchNothing) {
  EXPECT_EXIT(watch_nothing(), testing::ExitedWithCode(0), "^$");
}

TEST_F(WatchdogTest, EndsWithItsOwnerAtOnce) {
  const auto begin = std::chrono::steady_clock::now();
  for (int k = 0; k < 20; ++k) Watchdog(10);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5))
      << "it looks once a second, and need not be waited for";
}

}  // namespace
}  // namespace espalier
