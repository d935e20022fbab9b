// Laws: a first SIGTERM, SIGINT or SIGUSR2 is noted and the process lives on, the last of several is the one told; a second SIGTERM
// or SIGINT, two seconds later or more, ends it as the signal does by default, a SIGUSR2 counts for neither; SIGUSR1 is a request that is taken once. All in
// children: notes are for a process's life.
#include "espalier/base/signals.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <vector>

namespace espalier {
namespace {

constexpr int kWait = 0;  // long enough for another signal to be a second one

// Sends the signals to this process; says after each what was noted, and leaves.
void live_through(const std::vector<int>& signals, bool speaks = false) {
  watch_signals(speaks);
  for (const int number : signals) {
    if (number == kWait) {
      usleep(2050000);
      continue;
    }
    raise(number);
    std::fprintf(stderr, "[%s]", signal_name(stop_signal()));
  }
  std::_Exit(7);
}

class Signals : public testing::Test {
 protected:
  void SetUp() override { testing::GTEST_FLAG(death_test_style) = "fast"; }
};

TEST_F(Signals, TheFirstIsNotedAndTheProcessLivesOn) {
  EXPECT_EXIT(live_through({SIGTERM}), testing::ExitedWithCode(7), "^\\[SIGTERM\\]$");
  EXPECT_EXIT(live_through({SIGINT}), testing::ExitedWithCode(7), "^\\[SIGINT\\]$");
  EXPECT_EXIT(live_through({SIGUSR2}), testing::ExitedWithCode(7), "^\\[SIGUSR2\\]$");
}

TEST_F(Signals, ASecondEndsAtOnceByItsOwnName) {
  EXPECT_EXIT(live_through({SIGTERM, kWait, SIGTERM}), testing::KilledBySignal(SIGTERM), "^\\[SIGTERM\\]$");
  EXPECT_EXIT(live_through({SIGTERM, kWait, SIGINT}), testing::KilledBySignal(SIGINT), "^\\[SIGTERM\\]$");
}

// A batch system sends SIGTERM to the ranks and to the launcher, which sends it on.
TEST_F(Signals, TheSameSignalByTwoWaysIsOne) {
  EXPECT_EXIT(live_through({SIGTERM, SIGTERM, SIGTERM}), testing::ExitedWithCode(7), "^(\\[SIGTERM\\]){3}$");
  EXPECT_EXIT(live_through({SIGINT, SIGTERM}), testing::ExitedWithCode(7), "^\\[SIGINT\\]\\[SIGTERM\\]$");
}

TEST_F(Signals, TheWarningOfABatchSystemDoesNotCountAsTheFirst) {
  EXPECT_EXIT(live_through({SIGUSR2, kWait, SIGTERM}), testing::ExitedWithCode(7),
              "^\\[SIGUSR2\\]\\[SIGTERM\\]$");
  EXPECT_EXIT(live_through({SIGTERM, kWait, SIGUSR2}), testing::ExitedWithCode(7),
              "^\\[SIGTERM\\]\\[SIGUSR2\\]$");
  EXPECT_EXIT(live_through({SIGUSR2, SIGTERM, kWait, SIGTERM}), testing::KilledBySignal(SIGTERM),
              "^\\[SIGUSR2\\]\\[SIGTERM\\]$");
}

TEST_F(Signals, OneWhoSpeaksSaysOnceWhatIsComing) {
  EXPECT_EXIT(live_through({SIGUSR2, SIGTERM}, true), testing::ExitedWithCode(7),
              "^espalier: asked to stop: [^\n]*\n\\[SIGUSR2\\]\\[SIGTERM\\]$");
}

// Counts the requests there are after two signals.
void count_requests() {
  watch_signals(true);
  const int before = take_checkpoint_request();
  raise(SIGUSR1);
  raise(SIGUSR1);
  const int after = take_checkpoint_request(), again = take_checkpoint_request();
  raise(SIGUSR1);
  const int later = take_checkpoint_request();
  std::fprintf(stderr, "%d%d%d%d, stop %d", before, after, again, later, stop_signal());
  std::_Exit(7);
}

TEST_F(Signals, ARequestForACheckpointIsTakenOnceAndStopsNothing) {
  EXPECT_EXIT(count_requests(), testing::ExitedWithCode(7), "^0101, stop 0$");
}

// A read that a signal comes into.
void read_through_a_signal() {
  watch_signals(false);
  int ends[2];
  if (pipe(ends) != 0) std::_Exit(1);
  if (fork() == 0) {
    usleep(100000);
    kill(getppid(), SIGUSR2);
    usleep(100000);
    if (write(ends[1], "x", 1) != 1) std::_Exit(1);
    std::_Exit(0);
  }
  char byte = 0;
  const auto got = read(ends[0], &byte, 1);
  std::fprintf(stderr, "got %ld, stop %d", static_cast<long>(got), stop_signal() == SIGUSR2);
  std::_Exit(7);
}

TEST_F(Signals, ReadingAndWritingGoOnAfterASignal) {
  EXPECT_EXIT(read_through_a_signal(), testing::ExitedWithCode(7), "^got 1, stop 1$");
}

}  // namespace
}  // namespace espalier
