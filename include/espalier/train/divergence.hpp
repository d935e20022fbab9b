// Which keys are likely to make a training diverge, in words.
#pragma once

#include <string>

#include "espalier/base/config.hpp"

namespace espalier {

/// What to change where the loss grows: the keys that are set beyond what is usual, those furthest
/// beyond first, or else the learning rate and the features. "lower train.weight_decay (1e+30; 0.1
/// is a lot)".
std::string remedy_for_divergence(const Config& config);

}  // namespace espalier
