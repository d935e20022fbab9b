// The connected components of a graph, whichever way its edges point.
//
// FastSV (Zhang, Azad, Hu: FastSV, a distributed-memory connected component algorithm with fast
// convergence, PP 2020), with the minimum as it is there: every vertex has a parent f, and in each
// round, with g = f[f] and m[v] = the least g of v's neighbours,
//
//     f[f[v]] = min(f[f[v]], m[v])        a tree hooks onto another
//     f[v]    = min(f[v], m[v], g[v])     and becomes flatter
//
// until no g changes; a logarithm of rounds in practice. Then f[v] is the least vertex of v's
// component. Parents only get less and all of a round is computed from those before it, so nothing
// depends on the number of ranks.
#pragma once

#include <cstdint>

#include "espalier/comm/communicator.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// Collective. Of each row of this rank's even range the least vertex of its component. `rows`: of
/// the square adjacency matrix. Memory in proportion to the rank's rows and entries.
template <class Index>
Buffer<std::int64_t> connected_components(const Communicator& comm, const Csr<Index>& rows);

}  // namespace espalier
