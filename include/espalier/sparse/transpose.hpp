// The transpose of a block by counting sort: O(rows + threads columns + entries).
#pragma once

#include "espalier/base/execution.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// result = B^T [columns, rows]; its memory is reused. Each row's entries come in ascending column,
/// equal ones in the order they had: stable, so every sum over a row of the transpose has one
/// order, for any number of threads. Without values it stays without values. `positions`, unless
/// null, becomes [entries]: entry k of the result is the block's entry number positions[k], counted
/// from its first one, so that what else belongs to the entries can follow.
void transpose(const Cpu&, const BlockView<Cpu>& block, Block& result,
               Buffer<std::int64_t>* positions = nullptr);
/// The same bits on a GPU, by a stable sort by column; fewer than 2^31 entries. No wait.
void transpose(const Cuda&, const BlockView<Cuda>& block, Csr<std::int32_t, Cuda>& result,
               DeviceArray<std::int64_t>* positions = nullptr);

/// The transpose, by one thread.
Block transpose(const BlockView<Cpu>& block);

}  // namespace espalier
