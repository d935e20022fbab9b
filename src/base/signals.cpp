#include "espalier/base/signals.hpp"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>

namespace espalier {

namespace {

// Lock-free, so a handler may touch them.
std::atomic<bool> checkpoint_asked{false};
std::atomic<int> stop_asked{0};
std::atomic<double> first_came_at{0};  // seconds of a clock that only rises; 0: none came
constexpr double kSameSignalSeconds = 2;
bool handler_speaks = false;

void say(const char* text) {
  if (handler_speaks && write(STDERR_FILENO, text, std::strlen(text)) < 0) handler_speaks = false;
}

double seconds_now() {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);  // a handler may call it
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void ask_for_checkpoint(int) {
  checkpoint_asked = true;
}

// SIGUSR2 is a warning of the batch system, which may send SIGTERM after it: only the second of the others ends at once.
void ask_to_stop(int number) {
  if (number != SIGUSR2) {
    double first = 0;
    const double moment = seconds_now();
    if (!first_came_at.compare_exchange_strong(first, moment) && moment - first >= kSameSignalSeconds) {
      std::signal(number, SIG_DFL);
      raise(number);
      return;
    }
  }
  if (stop_asked.exchange(number) == 0)
    say("espalier: asked to stop: finishing the step, then saving a checkpoint\n");
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

}  // namespace

void watch_signals(bool speaks) {
  handler_speaks = speaks;
  handle(SIGUSR1, ask_for_checkpoint);
  for (const int number : {SIGUSR2, SIGTERM, SIGINT}) handle(number, ask_to_stop);
}

bool take_checkpoint_request() {
  return checkpoint_asked.exchange(false);
}

int stop_signal() {
  return stop_asked;
}

const char* signal_name(int number) {
  switch (number) {
    case SIGUSR1:
      return "SIGUSR1";
    case SIGUSR2:
      return "SIGUSR2";
    case SIGTERM:
      return "SIGTERM";
    case SIGINT:
      return "SIGINT";
    default:
      return "a signal";
  }
}

}  // namespace espalier
