// The transpose of a block by counting sort: O(rows + columns + entries).
#pragma once

#include "espalier/sparse/csr.hpp"

namespace espalier {

/// B^T [columns, rows]. Each row's entries come in ascending column, equal ones in the order they had:
/// stable, so every sum over a row of the transpose has one order. Without values it stays without values.
Block transpose(const Block& block);

/// The same into `result`, whose memory is reused.
void transpose(const Block& block, Block& result);

}  // namespace espalier
