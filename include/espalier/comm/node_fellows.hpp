// The ranks of a node make each other's acquaintance, so that one speaks for all when the job ends
// (base/last_words.hpp).
#pragma once

#include "espalier/comm/communicator.hpp"

namespace espalier {

/// Collective, once. Only ranks whose processes this one can see are watched, so none is missed
/// that was never there: in a container of its own a process has numbers that mean nothing outside.
void meet_node_fellows(const Communicator& world);

}  // namespace espalier
