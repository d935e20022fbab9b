#include "espalier/base/signals.hpp"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/base/final_message.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/base/watchdog.hpp"

namespace espalier {

namespace {

enum class Phase { kNothingToSave, kInSteps, kLeaving };

// Lock-free, so a handler may touch them.
std::atomic<Phase> phase{Phase::kNothingToSave};
std::atomic<const char*> consequence{""};
std::atomic<bool> checkpoint_asked{false};
std::atomic<int> stop_asked{0};
std::atomic<double> first_came_at{0};  // seconds of a clock that only rises; 0: none came
constexpr double kSameSignalSeconds = 2;

double monotonic_seconds() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);  // a handler may call it
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// A launcher sends a signal to all its ranks; then those of rank 0's node speak. What came to me
// alone, only I can tell.
bool is_mine_to_tell(const siginfo_t& information) {
  return on_first_node() || information.si_pid != getppid();
}

FinalLine& operator<<(FinalLine& line, const NodePeer& peer) {
  return line << "rank " << peer.rank << " (process " << peer.pid << ") of this node has died";
}

void say_what_ends_the_job(int number, const siginfo_t& information) {
  const NodePeer* dead = vanished_peer();
  if (number == SIGPIPE || (dead == nullptr && !is_mine_to_tell(information)) || !claim_final_message())
    return;
  const char* doing = current_activity();
  const char* meaning = consequence;
  FinalLine line;
  if (dead != nullptr)
    line << *dead;
  else
    line << signal_name(number);
  if (doing[0] != '\0') line << " while " << doing;
  line << ": the job ends at once";
  if (meaning[0] != '\0') line << "; " << meaning;
  line.write();
}

void end_at_once(int number, siginfo_t* information, void*) {
  remove_temporary_files();
  say_what_ends_the_job(number, *information);
  claim_final_message();
  std::signal(number, SIG_DFL);
  raise(number);  // comes when this handler returns
}

void ask_for_checkpoint(int, siginfo_t*, void*) {
  checkpoint_asked = true;
}

// SIGUSR2 is a warning of the batch system, which may send SIGTERM after it: only the second of the
// others ends at once.
bool is_the_second(int number) {
  if (number == SIGUSR2) return false;
  double first = 0;
  const double moment = monotonic_seconds();
  return !first_came_at.compare_exchange_strong(first, moment) && moment - first >= kSameSignalSeconds;
}

void ask_to_stop(int number, siginfo_t* information, void* context) {
  const bool in_steps = phase == Phase::kInSteps;
  // Without one of its ranks no step comes to its end.
  if (phase == Phase::kNothingToSave || is_the_second(number) || (in_steps && vanished_peer() != nullptr))
    return end_at_once(number, information, context);
  const bool first = stop_asked.exchange(number) == 0;
  if (first && in_steps && failure_context().rank == 0 && !final_message_is_claimed())
    (FinalLine() << signal_name(number) << " has come: waiting for the step to end").write();
}

void handle(int number, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

// nohup, for one, has it ignored.
bool is_ignored(int number) {
  struct sigaction action = {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

void watch_signals() {
  failure_context();  // made before a handler looks at it
  handle(SIGUSR1, ask_for_checkpoint);
  for (const int number : {SIGUSR2, SIGTERM, SIGINT}) handle(number, ask_to_stop);
  for (const int number : {SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU, SIGXFSZ})
    if (!is_ignored(number)) handle(number, end_at_once);
}

void note_consequence(const char* words) {
  consequence = words;
}

const char* noted_consequence() {
  return consequence;
}

StepsUnderWay::StepsUnderWay() {
  phase = Phase::kInSteps;
}

StepsUnderWay::~StepsUnderWay() {
  phase = Phase::kLeaving;
}

void note_leaving() {
  phase = Phase::kLeaving;
  claim_final_message();
}

bool take_checkpoint_request() {
  return checkpoint_asked.exchange(false);
}

int stop_signal() {
  return stop_asked;
}

const char* signal_name(int number) {
  static constexpr std::pair<int, const char*> kNames[] = {
      {SIGUSR1, "SIGUSR1"}, {SIGUSR2, "SIGUSR2"}, {SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"},
      {SIGHUP, "SIGHUP"},   {SIGQUIT, "SIGQUIT"}, {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"}};
  for (const auto& [known, name] : kNames)
    if (known == number) return name;
  return "a signal";
}

}  // namespace espalier
