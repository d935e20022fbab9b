#include "espalier/train/save_policy.hpp"

#include <algorithm>

#include "espalier/base/clock.hpp"
#include "espalier/base/signals.hpp"

namespace espalier {

namespace {

// What ranks vote for; the largest vote counts. Beyond kTimeIsUp: the number of a signal.
constexpr std::int64_t kGoOnVote = 0, kSaveVote = 1, kAskedVote = 2, kTimeIsUp = 3;

}  // namespace

SavePolicy::SavePolicy(const Communicator& world, const RunConfig& run, bool goes_on)
    : world_(world),
      run_(run),
      last_save_(now()),
      last_moment_(now()),
      saves_end_(goes_on || run.checkpoint_every > 0 || run.checkpoint_minutes > 0) {}

bool SavePolicy::time_is_up(bool epoch_ends, bool saves_now) const {
  if (run_.max_minutes <= 0) return false;
  const double next = epoch_ends ? epoch_end_seconds_ : step_seconds_, now = saves_now ? save_seconds_ : 0;
  return seconds_since_start() + now + 1.5 * (next + save_seconds_) > 60 * run_.max_minutes;
}

Next SavePolicy::next(const Cursor& cursor, std::int64_t steps, bool last) {
  moved_ = true;
  const double moment = now();
  const bool between_epochs = cursor.step == 0, epoch_ends = cursor.step == steps && !between_epochs;
  auto& longest = between_epochs ? epoch_end_seconds_ : step_seconds_;
  longest = std::max(longest, moment - last_moment_);

  const bool by_epochs =
      run_.checkpoint_every > 0 && between_epochs && (cursor.epoch - 1) % run_.checkpoint_every == 0;
  const bool by_minutes = world_.rank() == 0 && run_.checkpoint_minutes > 0 &&
                          moment - last_save_ >= 60 * run_.checkpoint_minutes;
  const bool asked = take_checkpoint_request(), saves = asked || by_epochs || by_minutes;
  std::int64_t vote = asked ? kAskedVote : saves ? kSaveVote : kGoOnVote;
  if (const int signal = stop_signal(); signal != 0)
    vote = kTimeIsUp + signal;
  else if (world_.rank() == 0 && time_is_up(epoch_ends, saves))
    vote = kTimeIsUp;
  vote = world_.all_reduce(vote, Reduction::kMax, "checkpoint");
  last_moment_ = now();
  if (last) return saves_end_ || vote > kGoOnVote ? Next::kSave : Next::kGoOn;
  if (vote >= kTimeIsUp) {
    stop_vote_ = vote;
    return Next::kSaveAndStop;
  }
  was_asked_ = vote == kAskedVote;
  return vote > kGoOnVote ? Next::kSave : Next::kGoOn;
}

// A checkpoint that is asked for meanwhile waits for the end of the evaluation.
bool SavePolicy::goes_on() {
  const std::int64_t stop = stop_signal() != 0 ? kTimeIsUp + stop_signal() : kGoOnVote;
  const bool out_of_time = world_.rank() == 0 && run_.max_minutes > 0 && moved_ &&
                           seconds_since_start() + 1.5 * save_seconds_ > 60 * run_.max_minutes;
  const auto vote =
      world_.all_reduce(out_of_time ? std::max(stop, kTimeIsUp) : stop, Reduction::kMax, "checkpoint");
  if (vote >= kTimeIsUp) stop_vote_ = vote;
  return vote < kTimeIsUp;
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
