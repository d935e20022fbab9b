// The ranks of a node tell each other who they are, so that one speaks for all when the job ends
// (base/final_message.hpp).
#pragma once

#include "espalier/comm/communicator.hpp"

namespace espalier {

/// Collective, once. Only ranks whose processes this one can see are watched, so none is missed
/// that was never there: in a container of its own a process has numbers that mean nothing outside.
void exchange_node_peers(const Communicator& world);

}  // namespace espalier
