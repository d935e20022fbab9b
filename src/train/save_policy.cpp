#include "espalier/train/save_policy.hpp"

#include <algorithm>

#include "espalier/base/clock.hpp"
#include "espalier/base/signals.hpp"

namespace espalier {

namespace {

// What ranks vote for; the largest vote counts. Beyond kTimeIsUp: the number of a signal.
constexpr std::int64_t kGoOnVote = 0, kSaveVote = 1, kTimeIsUp = 2;

}  // namespace

SavePolicy::SavePolicy(const Communicator& world, const RunConfig& run, bool goes_on)
    : world_(world),
      run_(run),
      last_save_(now()),
      last_moment_(now()),
      saves_end_(goes_on || run.checkpoint_every > 0 || run.checkpoint_minutes > 0) {}

bool SavePolicy::time_is_up(bool epoch_ends) const {
  if (run_.max_minutes <= 0) return false;
  const double next = epoch_ends ? epoch_end_seconds_ : step_seconds_;
  return seconds_since_start() + 1.5 * (next + save_seconds_) > 60 * run_.max_minutes;
}

Next SavePolicy::next(const Cursor& cursor, std::int64_t steps, bool last) {
  const double moment = now();
  auto& longest = epoch_ends_ ? epoch_end_seconds_ : step_seconds_;
  longest = std::max(longest, moment - last_moment_);
  const bool between_epochs = cursor.step == 0;
  epoch_ends_ = cursor.step == steps && !between_epochs;

  std::int64_t vote = kGoOnVote;
  if (const int signal = stop_signal(); signal != 0)
    vote = kTimeIsUp + signal;
  else if (world_.rank() == 0 && time_is_up(epoch_ends_))
    vote = kTimeIsUp;
  else if (take_checkpoint_request() || (world_.rank() == 0 && run_.checkpoint_minutes > 0 &&
                                         moment - last_save_ >= 60 * run_.checkpoint_minutes))
    vote = kSaveVote;
  vote = world_.all_reduce(vote, Reduction::kMax, "checkpoint");
  const bool every =
      run_.checkpoint_every > 0 && between_epochs && (cursor.epoch - 1) % run_.checkpoint_every == 0;
  last_moment_ = now();
  if (last) return saves_end_ || vote > kGoOnVote ? Next::kSave : Next::kGoOn;
  if (vote >= kTimeIsUp) {
    stop_vote_ = vote;
    return Next::kSaveAndStop;
  }
  return vote == kSaveVote || every ? Next::kSave : Next::kGoOn;
}

void SavePolicy::saved(double seconds) {
  saves_end_ = true;
  save_seconds_ = std::max(save_seconds_, seconds);
  last_save_ = last_moment_ = now();
}

std::string SavePolicy::reason() const {
  if (stop_vote_ > kTimeIsUp) return signal_name(static_cast<int>(stop_vote_ - kTimeIsUp));
  return fmt::format("run.max_minutes = {}", run_.max_minutes);
}

}  // namespace espalier
