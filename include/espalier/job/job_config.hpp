// The config of a job, from its file and the command line.
#pragma once

#include <string>
#include <vector>

#include "espalier/base/config.hpp"
#include "espalier/comm/communicator.hpp"

namespace espalier {

/// Collective. Rank 0 reads the config file; every rank gets the same config. Refuses what this
/// program cannot do (check_job, Moment::kConfig), and, unless a graph is not needed, one that
/// names none. `overrides`: "section.key=value", which win over the file.
Config load_job_config(const Communicator& world, const std::string& path,
                       const std::vector<std::string>& overrides, bool needs_graph = true);

}  // namespace espalier
