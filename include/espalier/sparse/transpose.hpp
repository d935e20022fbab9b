// The transpose of a block by counting sort: O(rows + threads columns + entries).
#pragma once

#include "espalier/base/execution.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// B^T [columns, rows]. Each row's entries come in ascending column, equal ones in the order they had:
/// stable, so every sum over a row of the transpose has one order, for any number of threads. Without values it
/// stays without values.
Block transpose(const Block& block);

/// The same into `result`, whose memory is reused.
void transpose(const Cpu&, const Block& block, Block& result);
/// The same bits on a GPU, by a stable sort of the entries by column; fewer than 2^31 entries. The host does not wait.
void transpose(const Cuda&, const DeviceBlock& block, Csr<std::int32_t, Cuda>& result);

}  // namespace espalier
