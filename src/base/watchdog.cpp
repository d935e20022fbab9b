#include "espalier/base/watchdog.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "espalier/base/error.hpp"
#include "espalier/base/whereabouts.hpp"

namespace espalier {

namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void tell(double minutes) {
  std::string text;
  for (const auto& line : whereabouts())
    text += fmt::format("espalier: rank {} on {}: no step has finished for {:.3g} minutes: {}\n",
                        failure_context().rank, failure_context().host, minutes, line);
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

Watchdog::Watchdog(double minutes) : seconds_(60 * minutes), last_progress_(seconds_now()) {
  if (minutes > 0) thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::note_progress() {
  const std::scoped_lock lock(mutex_);
  last_progress_ = seconds_now();
  told_ = false;
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    changed_.wait_for(lock, std::chrono::duration<double>(std::min(1.0, seconds_ / 4)));
    const double quiet = seconds_now() - last_progress_;
    if (ending_ || quiet < seconds_) continue;
    if (!told_) tell(quiet / 60);
    told_ = true;
    if (quiet >= 2 * seconds_)
      fail_job(ExitCode::kInternal,
               fmt::format("no step has finished for {:.3g} minutes (run.stall_minutes = {:.3g}); the job "
                           "ends; the same command goes on from its last checkpoint, if it saved one",
                           quiet / 60, seconds_ / 60));
  }
}

}  // namespace espalier
