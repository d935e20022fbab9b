// Laws. In steps: a first SIGTERM, SIGINT or SIGUSR2 is noted and the process lives on, the last of
// several is the one told; a second SIGTERM or SIGINT, two seconds later or more, ends it as the
// signal does by default, a SIGUSR2 counts for neither. Before steps each of them ends the process
// at once, by its own name. SIGUSR1 is a request that is taken once and ends nothing, also before.
// On the way out a first one is passed over. Whatever ends the process at once says so in one line,
// with what was being done and what it means, removes temporary files, and says nothing where
// something else is the reason that was told. All in children: notes are for a process's life.
#include "espalier/base/signals.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "espalier/base/error.hpp"
#include "espalier/base/final_message.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/base/watchdog.hpp"

namespace espalier {
namespace {

constexpr int kWait = 0;  // long enough for another signal to be a second one

void be_rank(int number) {
  failure_context().rank = number;
  failure_context().host = "node7";
  failure_context().abort_job = nullptr;  // the child of a death test must not end the test's job
}

// Sends the signals to this process; says after each what was noted, and leaves.
[[noreturn]] void send(const std::vector<int>& signals) {
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

void live_through(const std::vector<int>& signals, int rank = 1) {
  be_rank(rank);
  watch_signals();
  const StepsUnderWay steps;
  send(signals);
}

void read_and_get(const std::vector<int>& signals) {
  be_rank(1);
  watch_signals();
  note_activity("reading the features");
  note_consequence("nothing is lost");
  send(signals);
}

// What the system adds on stderr when a signal ends a process: nothing, but of some signals under
// qemu-user a line.
std::string added_at_the_end_by(int number) {
  int ends[2] = {};
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    raise(number);
  }
  close(ends[1]);
  waitpid(child, nullptr, 0);
  std::string said(200, '\0');
  said.resize(static_cast<std::size_t>(std::max(ssize_t{0}, read(ends[0], said.data(), said.size()))));
  close(ends[0]);
  return said;
}

class Signals : public testing::Test {
 protected:
  void SetUp() override {
    testing::GTEST_FLAG(death_test_style) = "fast";
    // What nohup or a background shell ignores, and the process goes on ignoring, dies here.
    for (const int number : {SIGHUP, SIGINT, SIGQUIT}) std::signal(number, SIG_DFL);
  }
};

TEST_F(Signals, InStepsTheFirstIsNotedAndTheProcessLivesOn) {
  EXPECT_EXIT(live_through({SIGTERM}), testing::ExitedWithCode(7), "^\\[SIGTERM\\]$");
  EXPECT_EXIT(live_through({SIGINT}), testing::ExitedWithCode(7), "^\\[SIGINT\\]$");
  EXPECT_EXIT(live_through({SIGUSR2}), testing::ExitedWithCode(7), "^\\[SIGUSR2\\]$");
}

TEST_F(Signals, ASecondEndsAtOnceByItsOwnName) {
  EXPECT_EXIT(live_through({SIGTERM, kWait, SIGTERM}), testing::KilledBySignal(SIGTERM),
              "^\\[SIGTERM\\]espalier: rank 1 on node7: SIGTERM: the job ends at once\n$");
  EXPECT_EXIT(live_through({SIGTERM, kWait, SIGINT}), testing::KilledBySignal(SIGINT),
              "^\\[SIGTERM\\]espalier: rank 1 on node7: SIGINT: the job ends at once\n$");
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
              "^\\[SIGUSR2\\]\\[SIGTERM\\]espalier: ");
}

TEST_F(Signals, RankZeroSaysOnceWhatItWaitsFor) {
  EXPECT_EXIT(live_through({SIGUSR2, SIGTERM}, 0), testing::ExitedWithCode(7),
              "^espalier: rank 0 on node7: SIGUSR2 has come: waiting for the step to "
              "end\n\\[SIGUSR2\\]\\[SIGTERM\\]$");
}

TEST_F(Signals, BeforeStepsOneEndsAtOnceAndSaysWhereAndWhatItMeans) {
  for (const int number : {SIGTERM, SIGINT, SIGUSR2, SIGHUP, SIGQUIT, SIGXCPU})
    EXPECT_EXIT(read_and_get({number}), testing::KilledBySignal(number),
                testing::Matcher<const std::string&>(
                    std::string("espalier: rank 1 on node7: ") + signal_name(number) +
                    " while reading the features: the job ends at once; nothing is lost\n" +
                    added_at_the_end_by(number)));
  EXPECT_EXIT(read_and_get({SIGPIPE}), testing::KilledBySignal(SIGPIPE), "^$");
}

void leave_and_get(const std::vector<int>& signals) {
  be_rank(0);
  watch_signals();
  note_leaving();
  send(signals);
}

TEST_F(Signals, OnTheWayOutTheFirstIsPassedOverInSilence) {
  EXPECT_EXIT(leave_and_get({SIGTERM}), testing::ExitedWithCode(7), "^\\[SIGTERM\\]$");
  EXPECT_EXIT(leave_and_get({SIGTERM, kWait, SIGTERM}), testing::KilledBySignal(SIGTERM), "^\\[SIGTERM\\]$");
}

void finish_steps_and_get(int number) {
  be_rank(0);
  watch_signals();
  { const StepsUnderWay steps; }
  send({number});
}

TEST_F(Signals, AfterTheStepsNothingIsPromised) {
  EXPECT_EXIT(finish_steps_and_get(SIGTERM), testing::ExitedWithCode(7), "^\\[SIGTERM\\]$");
}

// ---- what the ranks of a node know of each other ----

// A process that has ended and was waited for.
int dead_process() {
  const int child = fork();
  if (child == 0) std::_Exit(0);
  waitpid(child, nullptr, 0);
  return child;
}

void lose_a_peer(bool in_steps, bool told) {
  be_rank(3);
  watch_signals();
  note_activity("reading the edges");
  set_node_peers({{1, getppid()}, {2, dead_process()}}, nullptr);
  if (told) claim_final_message();
  std::optional<StepsUnderWay> steps;
  if (in_steps) steps.emplace();
  send({SIGTERM});
}

TEST_F(Signals, SurvivorsNameTheRankThatHasDiedAndEndAtOnce) {
  for (const bool in_steps : {false, true})
    EXPECT_EXIT(lose_a_peer(in_steps, false), testing::KilledBySignal(SIGTERM),
                "^espalier: rank 3 on node7: rank 2 \\(process [0-9]+\\) of this node has died while "
                "reading the edges: the job ends at once\n$");
}

TEST_F(Signals, WhereTheReasonWasToldNothingIsAdded) {
  EXPECT_EXIT(lose_a_peer(false, true), testing::KilledBySignal(SIGTERM), "^$");
}

// The launcher is the parent. Its signal goes to all; another's may have come to this rank alone.
void get_from_the_launcher(bool first_node) {
  be_rank(3);
  watch_signals();
  set_node_peers({{first_node ? 0 : 2, getppid()}}, nullptr);
  const int child = fork();
  if (child == 0) pause();  // its launcher is the process that forked it
  usleep(50000);
  kill(child, SIGTERM);
  int status = 0;
  waitpid(child, &status, 0);
  std::_Exit(WIFSIGNALED(status) ? 7 : 1);
}

TEST_F(Signals, OfWhatReachesAllNodesTheFirstSpeaks) {
  EXPECT_EXIT(get_from_the_launcher(true), testing::ExitedWithCode(7),
              "^espalier: rank 3 on node7: SIGTERM: ");
  EXPECT_EXIT(get_from_the_launcher(false), testing::ExitedWithCode(7), "^$");
}

// ---- temporary files ----

std::string made_file(const char* name) {
  const auto path = testing::TempDir() + name + std::to_string(getpid());
  std::ofstream(path) << "half of it";
  return path;
}

void die_with_files(void (*die)()) {
  be_rank(0);
  watch_signals();
  const auto kept = made_file("kept"), gone = made_file("gone"), never_made = gone + ".never";
  { const TemporaryFile renamed(kept); }
  const TemporaryFile temporary(gone), not_yet(never_made), too_long(std::string(100000, 'x'));
  // A child looks at what is left: this process ends.
  const int watched = fork();
  if (watched == 0) die();
  int status = 0;
  waitpid(watched, &status, 0);
  std::fprintf(stderr, "{%s%s}", std::filesystem::exists(kept) ? "kept" : "",
               std::filesystem::exists(gone) ? " left" : "");
  std::filesystem::remove(kept);
  std::_Exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

TEST_F(Signals, TemporaryFilesGoWithTheProcess) {
  EXPECT_EXIT(die_with_files([] { raise(SIGTERM); }), testing::ExitedWithCode(128 + SIGTERM), "\\{kept\\}$");
  EXPECT_EXIT(die_with_files([] { raise(SIGHUP); }), testing::ExitedWithCode(128 + SIGHUP), "\\{kept\\}$");
  EXPECT_EXIT(die_with_files([] { raise(SIGPIPE); }), testing::ExitedWithCode(128 + SIGPIPE), "\\{kept\\}$");
  EXPECT_EXIT(die_with_files([] { fail_job(ExitCode::kMemory, "out of memory"); }),
              testing::ExitedWithCode(4), "\\{kept\\}$");
  EXPECT_EXIT(die_with_files([] { ESPALIER_CHECK(false, "a bug"); }), testing::ExitedWithCode(1),
              "\\{kept\\}$");
  EXPECT_EXIT(die_with_files([] { raise(SIGKILL); }), testing::ExitedWithCode(128 + SIGKILL),
              "\\{kept left\\}$");
}

void fill_the_list() {
  be_rank(0);
  watch_signals();
  std::vector<std::unique_ptr<TemporaryFile>> many;
  for (int round = 0; round < 3; ++round) {
    for (int k = 0; k < 40; ++k) many.push_back(std::make_unique<TemporaryFile>("/no/such/file"));
    many.clear();
  }
  const auto path = made_file("last");
  const TemporaryFile last(path);
  remove_temporary_files();
  std::_Exit(std::filesystem::exists(path) ? 1 : 7);
}

TEST_F(Signals, PlacesInTheListAreUsedAgain) {
  EXPECT_EXIT(fill_the_list(), testing::ExitedWithCode(7), "^$");
}

// ---- requests ----

// Counts the requests there are after two signals, the first of which came before steps.
void count_requests() {
  be_rank(1);
  watch_signals();
  const int before = take_checkpoint_request();
  raise(SIGUSR1);
  const StepsUnderWay steps;
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
  be_rank(1);
  watch_signals();
  const StepsUnderWay steps;
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

// Nobody reads what this process says: it ends all the same, within seconds.
void fail_with_a_full_pipe() {
  int ends[2];
  if (pipe(ends) != 0) std::_Exit(1);
  const std::string much(1 << 16, 'x');
  if (write(ends[1], much.data(), much.size()) < 0) std::_Exit(1);
  dup2(ends[1], STDERR_FILENO);
  be_rank(1);
  fail_job(ExitCode::kInput, "no one hears me");
}

TEST_F(Signals, OneWhoIsNotReadEndsAllTheSame) {
  EXPECT_EXIT(fail_with_a_full_pipe(), testing::ExitedWithCode(3), "^$");
}

}  // namespace
}  // namespace espalier
