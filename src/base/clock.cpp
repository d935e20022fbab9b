#include "espalier/base/clock.hpp"

#include <chrono>
#include <utility>

#include "espalier/base/watchdog.hpp"

namespace espalier {

namespace {
double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
Clock& installed() {
  static Clock clock{steady_seconds, [](double) {}};
  return clock;
}
double program_start = steady_seconds();
}  // namespace

void set_clock(Clock clock) {
  installed() = std::move(clock);
  program_start = now();
}
double seconds_since_start() {
  return now() - program_start;
}
double now() {
  return installed().now();
}
void charge(double seconds) {
  installed().charge(seconds);
}

double StageTimers::seconds(std::string_view path) const {
  const auto found = seconds_.find(path);
  return found == seconds_.end() ? 0.0 : found->second;
}

std::string StageTimers::path_of(std::string_view name) const {
  return (open_path_.empty() ? "" : open_path_ + '/') + std::string(name);
}

StageTimers::Scope::Scope(StageTimers& timers, std::string_view name)
    : timers_(timers), parent_length_(timers.open_path_.size()), start_(now()) {
  timers_.open_path_ = timers_.path_of(name);
  note_stage(timers_.open_path_);
}

StageTimers::Scope::~Scope() {
  timers_.seconds_[timers_.open_path_] += now() - start_;
  timers_.open_path_.resize(parent_length_);
  note_stage(timers_.open_path_);
}

}  // namespace espalier
