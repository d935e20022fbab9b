// Which cores the ranks of a job were bound to, and what is wrong with it.
#pragma once

#include <sched.h>

#include <string>
#include <vector>

#include "espalier/base/cores.hpp"
#include "espalier/base/log.hpp"
#include "espalier/comm/session.hpp"

namespace espalier {

/// Of one rank, as it is sent to others.
struct Binding {
  HostName host;
  cpu_set_t cores = {};  ///< that its threads may run on
  int online = 1;        ///< cores of its host
  int numa_nodes = 1;    ///< that have some of its cores
  int threads = 1;       ///< that it computes with
  bool bound = false;    ///< each thread to a core, by OpenMP
};

/// Of this rank. Not collective.
Binding binding_of(int threads);

/// What makes a job slow, in one line that says what to do, or nothing: ranks that have their
/// threads on the same cores, more threads than cores, ranks spread over several NUMA nodes; of
/// several the first. Ranks that nobody bound may share a host's cores as they like, but for
/// threads that OpenMP binds: those of each rank begin at the same core.
std::string binding_warning(const std::vector<Binding>& ranks);

/// Collective. Says so to the listener, which rank 0 has.
void warn_of_bindings(const Communicator& world, int threads, const log::Listener& listener);

}  // namespace espalier
