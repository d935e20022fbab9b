// Start and end of message passing: the only place that names the world communicator. And where a
// rank finds itself: its host, its place on the node, what the MPI library can do.
#pragma once

#include <optional>
#include <string>

#include "espalier/comm/communicator.hpp"

namespace espalier {

class Session {
 public:
  /// Starts MPI (for threads that communicate), installs the abort hook and the clock.
  Session(int* argc, char*** argv);
  /// Ends MPI. Collective.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Communicator& world() const { return world_; }

 private:
  Communicator world_;
};

/// What a library works on: MPI of this process, which it starts where nobody has, and then ends
/// with the process, and a communicator of its own. `handle`: of Fortran, whose ranks these are;
/// none: all. Collective over them. No guard of the process is installed: a failed check is an
/// exception, CheckFailed.
Communicator join_session(std::optional<int> handle);
/// Has anybody started MPI in this process, and not ended it?
bool mpi_is_running();
/// What the MPI library calls itself.
std::string mpi_library();

/// What a rank that runs out of memory advises from now on, in place of "use more ranks, ...".
/// `advice` must last as long as the process: there is no memory to copy it.
void set_memory_advice(const char* advice);

/// Does the MPI library let several threads of a process communicate at the same time?
bool threads_may_communicate();

/// The name of this rank's host, as it is sent to others.
struct HostName {
  char text[256] = {};

  HostName() { failure_context().host.copy(text, sizeof text - 1); }
  friend bool operator==(const HostName&, const HostName&) = default;
};

/// What this rank shares a node with.
struct NodePlace {
  int ranks = 1;    ///< ranks on my node
  int place = 0;    ///< my number among them
  int cores = 1;    ///< cores that I may run on
  int sharers = 1;  ///< ranks of my node that may run on exactly the same cores, I among them
};

/// Collective.
NodePlace place_on_node(const Communicator& world);

/// Waits until every rank of `world` has called it, `seconds` at most; false when some did not
/// come. For the way out after an error, when the others may be waiting elsewhere.
bool all_arrive_within(const Communicator& world, double seconds);

}  // namespace espalier
