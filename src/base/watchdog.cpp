#include "espalier/base/watchdog.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/base/final_message.hpp"
#include "espalier/base/progress.hpp"
#include "espalier/base/signals.hpp"

namespace espalier {

namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string quiet_words(double seconds) {
  return fmt::format("{} for {:.3g} minute{}", is_in_steps() ? "no step has finished" : "nothing has moved",
                     seconds / 60, seconds == 60 ? "" : "s");
}

void tell(double seconds) {
  std::string text;
  for (const auto& line : progress_lines())
    text += fmt::format("espalier: rank {} on {}: {}: {}\n", failure_context().rank, failure_context().host,
                        quiet_words(seconds), line);
  write_to_stderr(text);
}

}  // namespace

Watchdog::Watchdog(double minutes, std::string key) : seconds_(60 * minutes), key_(std::move(key)) {
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

void Watchdog::watch() {
  double last_moved = seconds_now();
  auto seen = movements();
  bool told = false;
  std::unique_lock lock(mutex_);
  while (!ending_) {
    changed_.wait_for(lock, std::chrono::duration<double>(std::min(1.0, seconds_ / 4)));
    if (const auto moved = movements(); moved != seen) {
      seen = moved;
      last_moved = seconds_now();
      told = false;
    }
    const double quiet = seconds_now() - last_moved;
    if (ending_ || quiet < seconds_) continue;
    if (!told && !final_message_is_claimed()) tell(quiet);
    told = true;
    if (const char* consequence = noted_consequence(); quiet >= 2 * seconds_)
      fail_job(ExitCode::kInternal,
               fmt::format("{} ({} = {:.3g}); the job ends{}{}", quiet_words(quiet), key_, seconds_ / 60,
                           consequence[0] == '\0' ? "" : "; ", consequence));
  }
}

}  // namespace espalier
