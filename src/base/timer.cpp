#include "espalier/base/timer.hpp"

#include "espalier/base/clock.hpp"

namespace espalier {

double StageTimers::seconds(std::string_view path) const {
  const auto found = seconds_.find(path);
  return found == seconds_.end() ? 0.0 : found->second;
}

StageTimers::Scope::Scope(StageTimers& timers, std::string_view name)
    : timers_(timers), parent_length_(timers.open_path_.size()), start_(now()) {
  if (parent_length_ > 0) timers_.open_path_ += '/';
  timers_.open_path_ += name;
}

StageTimers::Scope::~Scope() {
  timers_.seconds_[timers_.open_path_] += now() - start_;
  timers_.open_path_.resize(parent_length_);
}

}  // namespace espalier
