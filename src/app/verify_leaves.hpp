// What no graph is needed for: the functions, numbers and sums that samples and losses are made of.
#pragma once

#include "verify_lines.hpp"

namespace espalier {

/// Collective.
void verify_leaves(const Communicator& world, int threads, VerifyLines& lines);

}  // namespace espalier
