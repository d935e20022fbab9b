#include "espalier/base/timer.hpp"

#include "espalier/base/clock.hpp"
#include "espalier/base/progress.hpp"

namespace espalier {

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
