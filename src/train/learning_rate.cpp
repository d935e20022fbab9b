#include "espalier/train/learning_rate.hpp"

#include <algorithm>

#include "espalier/base/elementary.hpp"
#include "espalier/base/error.hpp"

namespace espalier {

double learning_rate(const LearningRateSchedule& s, std::int64_t epoch) {
  if (epoch < s.warmup) return s.base * static_cast<double>(epoch + 1) / static_cast<double>(s.warmup);
  const std::int64_t t = epoch - s.warmup;
  if (s.kind == "constant") return s.base;
  if (s.kind == "step") return s.base * power_of(s.factor, t / std::max<std::int64_t>(s.every, 1));
  if (s.kind == "cosine") {
    const auto length = static_cast<double>(std::max<std::int64_t>(s.epochs - s.warmup, 1));
    const double progress = std::min(static_cast<double>(t) / length, 1.0);
    return s.minimum + (s.base - s.minimum) * (1 + cosine_of_turn(progress)) / 2;
  }
  usage_error("lr_schedule \"{}\" is not one of constant, step, cosine", s.kind);
}

double rate_of_epoch(const TrainConfig& train, double base, std::int64_t epoch) {
  const LearningRateSchedule schedule = {.kind = train.lr_schedule,
                                         .base = base,
                                         .epochs = train.epochs,
                                         .warmup = train.lr_warmup,
                                         .every = train.lr_step,
                                         .factor = train.lr_decay};
  return learning_rate(schedule, epoch - 1);
}

}  // namespace espalier
