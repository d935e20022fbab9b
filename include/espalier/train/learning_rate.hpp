// The learning rate of an epoch, a pure function: a restart needs no state.
//
//     constant   base
//     step       base * factor^floor(t / every)
//     cosine     minimum + (base - minimum) (1 + cos(pi t / (epochs - warmup))) / 2
//
// where t = epoch - warmup; before that the rate rises linearly, base * (epoch + 1) / warmup (Goyal
// et al. 2017). The cosine is one cycle of Loshchilov and Hutter (2017).
#pragma once

#include <cstdint>
#include <string>

#include "espalier/base/config.hpp"

namespace espalier {

struct LearningRateSchedule {
  std::string kind = "constant";  ///< "constant" | "step" | "cosine"
  double base = 0.01;
  std::int64_t epochs = 1;  ///< of the whole training, for the cosine
  std::int64_t warmup = 0;  ///< epochs
  std::int64_t every = 1;   ///< epochs between two steps
  double factor = 0.1;      ///< of one step
  double minimum = 0;       ///< of the cosine
};

/// The rate of `epoch`, which counts from 0. Throws UserError (usage) for an unknown kind.
double learning_rate(const LearningRateSchedule& schedule, std::int64_t epoch);

/// The rate of an epoch, which counts from 1, of what begins with `base`, by train.lr_*.
double rate_of_epoch(const TrainConfig& train, double base, std::int64_t epoch);

}  // namespace espalier
