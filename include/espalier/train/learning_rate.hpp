// The learning rate of an epoch, a pure function of train.lr_*: a restart needs no state.
//
//     constant   base
//     step       base * lr_decay^floor(t / lr_step)
//     cosine     base (1 + cos(pi t / (epochs - lr_warmup))) / 2
//
// where t = epoch - 1 - lr_warmup; before that the rate rises linearly, base * epoch / lr_warmup
// (Goyal et al. 2017). The cosine is one cycle of Loshchilov and Hutter (2017).
#pragma once

#include <cstdint>

#include "espalier/base/config.hpp"

namespace espalier {

/// The rate of an epoch, which counts from 1, of what begins with `base`.
double rate_of_epoch(const TrainConfig& train, double base, std::int64_t epoch);

}  // namespace espalier
