// The config of a job, from its file and the command line.
#pragma once

#include "commands.hpp"
#include "espalier/base/config.hpp"
#include "espalier/comm/communicator.hpp"

namespace espalier {

/// Collective. Rank 0 reads the config file; every rank gets the same config. Refuses what this
/// program cannot do (check_job, Moment::kConfig).
Config load_job_config(const Communicator& world, const JobArguments& arguments);

}  // namespace espalier
