// Which PCIe switch the GPU of each rank hangs on: what exchange_rounds.hpp goes by.
#pragma once

#include <string>
#include <vector>

#include "espalier/comm/communicator.hpp"
#include "espalier/comm/exchange_rounds.hpp"

namespace espalier {

/// Collective. The place of each rank's GPU, the same on every rank. `bus_id` is this rank's
/// ("0000:3B:00.0"). Within a node NVIDIA's management library says which GPUs are on one switch
/// and which NVLink joins. It is part of the driver and loaded at run time: where a rank has none,
/// or a call fails, and for ranks of several nodes, all switches are unknown.
std::vector<GpuPlace> find_gpu_places(const Communicator& comm, const std::string& bus_id);

}  // namespace espalier
