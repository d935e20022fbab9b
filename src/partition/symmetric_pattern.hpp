// The pattern of A + A^T without its diagonal, distributed: what partitioning works on, as a cut
// edge costs the same whichever way it points.
#pragma once

#include <cstdint>

#include "espalier/comm/communicator.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// Collective. Rows even_range(n, ranks, rank) of the pattern of A + A^T without loops, columns
/// ascending, from the same rows of the n x n matrix A, columns ascending. A symmetric A is noticed
/// (by a hash of its entries, 64 bits) and keeps its memory.
Csr<std::int64_t> symmetric_pattern(const Communicator& comm, Csr<std::int64_t> rows);

}  // namespace espalier
