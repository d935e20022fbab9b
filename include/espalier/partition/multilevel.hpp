// The clusters of an order by our own multilevel method, distributed: the graph is made coarser,
// A_c = P^T A P with exact integer weights, until it is small; METIS cuts the coarsest graph; on
// the way back vertices move to better clusters. For graphs that one process or METIS's 32 bits
// cannot hold. The result is the same for every number of ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "espalier/comm/communicator.hpp"
#include "espalier/partition/order.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

struct MultilevelOptions {
  int clusters = 1024;  ///< in [1, kMostClusters]
  std::uint64_t seed = 0;
  std::int64_t coarsest = 20000;  ///< vertices at which coarsening ends, or thereabouts
  int rounds = 16;                ///< of refinement on each level, at most
};

/// Collective. The cluster of each of my rows, numbered from 0 without a gap; clusters close in
/// number are densely connected at every scale. `rows`: even_range(n, comm.size(), comm.rank()) of
/// the n x n pattern, symmetric, columns ascending, without loops; values are not looked at.
/// `weights` [rows]: what each vertex counts for in every kind of balance. At most options.clusters
/// clusters, balanced in every kind, parts of a half, a quarter and an eighth of them tightly.
/// UserError(kUsage) on every rank when the program was built without METIS.
std::vector<std::uint16_t> cluster_by_multilevel(const Communicator& comm, Csr<std::int64_t> rows,
                                                 Buffer<ClusterWeights> weights,
                                                 const MultilevelOptions& options);

}  // namespace espalier
