// The transpose of a block by counting sort: O(rows + threads columns + entries).
#pragma once

#include <memory>
#include <span>

#include "espalier/base/execution.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// result = B^T [columns, rows]; its memory is reused. Each row's entries come in ascending column,
/// equal ones in the order they had: stable, so every sum over a row of the transpose has one
/// order, for any number of threads. Without values it stays without values. `positions`, unless
/// null, becomes [entries], of fewer than 2^31: entry k of the result is the block's entry number
/// positions[k], counted from its first one, so that what else belongs to the entries can follow.
void transpose(const Cpu&, const BlockView<Cpu>& block, Block& result,
               Buffer<std::int32_t>* positions = nullptr);
/// The same bits on a GPU, by a stable sort by column; fewer than 2^31 entries. No wait.
void transpose(const Cuda&, const BlockView<Cuda>& block, Csr<std::int32_t, Cuda>& result,
               DeviceArray<std::int32_t>* positions = nullptr);

/// The transposes of many blocks by few launches: each becomes its block's `transposed`, the same
/// bits as above. In memory that is returned. Blocks of up to `at_once` entries and columns are
/// sorted together, in 25 bytes for each. The host does not wait.
std::shared_ptr<const void> transpose_all(const Cuda&, std::span<BlockView<Cuda>* const> blocks,
                                          std::int64_t at_once = 1 << 23);

/// The transpose, by one thread.
Block transpose(const BlockView<Cpu>& block);

}  // namespace espalier
