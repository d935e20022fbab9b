// The hash of one edge: its five numbers (batch, layer, destination, source, value bits) are absorbed one after another
// by the finaliser of SplitMix64 (Steele, Lea, Flood 2014), a bijection of 64 bits in which every input bit flips
// every output bit with probability near one half.
#pragma once

#include <cstdint>

#include "espalier/base/host_device.hpp"

namespace espalier {

ESPALIER_HD inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

ESPALIER_HD inline std::uint64_t absorb(std::uint64_t state, std::int64_t word) {
  return mix(state ^ static_cast<std::uint64_t>(word));
}

/// The state after the batch and the layer, blocks[layer - 1].
ESPALIER_HD inline std::uint64_t hash_of_layer(std::int64_t batch, std::int64_t layer) {
  return absorb(absorb(0, batch), layer);
}

/// The state after the source, not mixed yet.
ESPALIER_HD inline std::uint64_t with_source(std::uint64_t of_row, std::int64_t source) {
  return of_row ^ static_cast<std::uint64_t>(source);
}

/// The whole hash from with_source() and the bits of the value.
ESPALIER_HD inline std::uint64_t finish_edge(std::uint64_t of_row_and_source, std::uint32_t value_bits) {
  return mix(mix(of_row_and_source) ^ value_bits);
}

}  // namespace espalier
