// EXTRACT for node-wise sampling: picked global ids become a block with local ids.
#pragma once

#include <cstdint>
#include <span>

#include "espalier/sample/minibatch.hpp"

namespace espalier {

/// Builds the block of one batch and layer and extends the batch's list of vertices.
///
/// vertices: in, F[l]; out, F[l-1] = F[l] followed by the new vertices in ascending id. Row r of the block
/// has the columns picks[offsets[r] - offsets[0] ..] (global ids) and the values beside them; offsets has
/// |F[l]| + 1 entries.
Block extract_block(std::span<const std::int64_t> offsets, std::span<const std::int64_t> picks,
                    std::span<const float> values, Buffer<std::int64_t>& vertices);

}  // namespace espalier
