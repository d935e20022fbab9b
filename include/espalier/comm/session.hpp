// Start and end of message passing for one process. The only place that names the world communicator.
#pragma once

#include "espalier/comm/communicator.hpp"

namespace espalier {

class Session {
 public:
  /// Starts MPI, installs the abort hook and the clock.
  Session(int* argc, char*** argv);
  /// Ends MPI. Collective.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Communicator& world() const { return world_; }

 private:
  Communicator world_;
};

/// Collective. How many ranks of `world` run on my node, at least 1, and my place among them.
struct NodePlace {
  int ranks = 1;
  int place = 0;
};
NodePlace place_on_node(const Communicator& world);

}  // namespace espalier
