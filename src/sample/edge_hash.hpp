// The hash of an edge absorbs (base/mix.hpp) its batch, layer, destination, source and value bits.
#pragma once

#include <cstdint>

#include "espalier/base/mix.hpp"

namespace espalier {

/// The state after the batch and the layer, blocks[layer - 1].
ESPALIER_HD inline std::uint64_t hash_of_layer(std::int64_t batch, std::int64_t layer) {
  return absorb(absorb(0, batch), layer);
}

/// The state after the source, not mixed yet. The relation stands above the vertex.
ESPALIER_HD inline std::uint64_t with_source(std::uint64_t of_row, std::int64_t source,
                                             std::uint64_t relation = 0) {
  return of_row ^ static_cast<std::uint64_t>(source) ^ relation << 48;
}

/// The whole hash from with_source() and the bits of the value.
ESPALIER_HD inline std::uint64_t finish_edge(std::uint64_t of_row_and_source, std::uint32_t value_bits) {
  return mix(mix(of_row_and_source) ^ value_bits);
}

}  // namespace espalier
