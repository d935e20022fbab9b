// Which vertices of a level become one vertex of the next: size-constrained label propagation
// (Meyerhenke, Sanders, Schulz: Partitioning complex networks via size-constrained clustering,
// 2014), in synchronous rounds. A matching would stall on the stars of power-law graphs.
//
// Each vertex begins with its own id as its label. In a round half of the labels give and half
// receive, by a hash; a vertex whose label gives asks for the receiving label it is most heavily
// connected with, if more than with its own. The owner of a label admits those who ask, heaviest
// first, while they fit. Vertices that stay alone join others that would have gone to the same
// label (two-hop: leaves of a star whose centre is full), those without edges any other such. All
// of it depends on the last round's state, on integers and on hashes, so on no number of ranks.
#pragma once

#include <cstdint>

#include "level_graph.hpp"

namespace espalier {

struct ClusteringOptions {
  ClusterWeights limit{};  ///< of a label with more than one vertex, exact
  std::uint64_t seed = 0;
  int rounds = 8;
};

/// Collective. The label of each own vertex: the id of a vertex.
Buffer<std::int64_t> cluster_vertices(const Communicator& comm, const LevelGraph& graph,
                                      const ClusteringOptions& options);

}  // namespace espalier
