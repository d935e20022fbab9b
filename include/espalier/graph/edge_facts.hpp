// What one look at all edges of a graph file says of them.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/comm/communicator.hpp"
#include "espalier/graph/graph_file.hpp"

namespace espalier {

/// Of each relation; a graph without types has one.
struct EdgeFacts {
  std::vector<std::int64_t> entries, most;       ///< the largest in-degree
  std::vector<std::uint64_t> forward, backward;  ///< sums over edges, and over reversed edges:
                                                 ///< equal where the sets of edges are
  std::int64_t self_loops = 0;                   ///< of all
  std::int64_t isolated = 0;                     ///< vertices without an edge in either direction
};

/// Collective. Of a file that is read with its relations apart.
EdgeFacts read_edge_facts(const Communicator& world, const GraphFile& file, const char* label);

}  // namespace espalier
