// What a message, a byte and each kind of work cost on this machine (plan/machine.hpp).
//
// All ranks work at once, as in a job, and what is measured is their mean; of several repetitions
// the least disturbed counts. The operations are those that a job spends its time in, on a graph
// and matrices larger than the caches. alpha and beta come from exchanges among all ranks of a
// node, and among ranks of different nodes: 8 bytes to each, then megabytes.
#pragma once

#include <string>

#include "espalier/comm/session.hpp"
#include "espalier/plan/machine.hpp"

namespace espalier {

/// Collective. Fills in the links and rates, with machine.threads on each rank; the disk's is of
/// `folder`, 0 where a rank cannot write to it. One rank alone leaves the links as they are.
void measure_machine(const Communicator& world, const NodePlace& node, const std::string& folder,
                     Machine& machine);

}  // namespace espalier
