// EXTRACT: picked global ids become a block with local ids, and the batch's list of vertices grows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "espalier/product/product.hpp"
#include "espalier/sample/local_ids.hpp"
#include "espalier/sample/minibatch.hpp"
#include "espalier/sample/sampler.hpp"

namespace espalier {

/// A minibatch under way, in arrays of its own.
struct OwnedMinibatch {
  std::int64_t number = 0;
  Buffer<std::int64_t> vertices;  ///< F[l] of the layer that comes next
  std::vector<Block> blocks;
};

/// Minibatches that hold their seeds and room for `layers` blocks.
std::vector<OwnedMinibatch> begin_minibatches(std::span<const SeedBatch> batches, std::size_t layers);

/// The frontiers of all minibatches of a bulk, one under the other.
StackedFrontier stack(const std::vector<OwnedMinibatch>& minibatches);

/// What was made, without copying it.
Minibatch finish_minibatch(OwnedMinibatch minibatch);
std::vector<Minibatch> finish_minibatches(std::vector<OwnedMinibatch> minibatches);

/// Node-wise: the block of one batch and layer from the picks of each row.
///
/// vertices: in, F[l]; out, F[l-1] = F[l] followed by the new vertices in ascending id. Row r of the block
/// has the columns picks[offsets[r] - offsets[0] ..] (global ids) and the values beside them, or the means
/// 1 / |picked| when there are none; offsets has |F[l]| + 1 entries.
template <class Index>
Block extract_block(const Cpu& cpu, std::span<const std::int64_t> offsets, std::span<const Index> picks,
                    std::span<const float> values, LocalIds& ids, Buffer<std::int64_t>& vertices);

}  // namespace espalier
