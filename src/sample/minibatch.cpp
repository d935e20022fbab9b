// The hash of one edge: its five numbers are absorbed one after another by the finaliser of SplitMix64
// (Steele, Lea, Flood 2014), a bijection of 64 bits in which every input bit flips every output bit with
// probability near one half.
#include "espalier/sample/minibatch.hpp"

#include <bit>

namespace espalier {

namespace {

std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t absorb(std::uint64_t state, std::int64_t word) {
  return mix(state ^ static_cast<std::uint64_t>(word));
}

}  // namespace

std::uint64_t sample_digest(const Minibatch& minibatch) {
  std::uint64_t digest = 0;
  for (std::size_t l = 0; l < minibatch.blocks.size(); ++l) {
    const auto& block = minibatch.blocks[l];
    const auto of_layer = absorb(absorb(0, minibatch.number), static_cast<std::int64_t>(l) + 1);
    for (std::int64_t row = 0; row < block.rows; ++row) {
      const auto of_row = absorb(of_layer, minibatch.vertices[static_cast<std::size_t>(row)]);
      const auto columns = block.row_indices(row);
      const auto values = block.row_values(row);
      for (std::size_t k = 0; k < columns.size(); ++k) {
        const auto source = minibatch.vertices[static_cast<std::size_t>(columns[k])];
        digest += absorb(absorb(of_row, source), std::bit_cast<std::uint32_t>(values[k]));
      }
    }
  }
  return digest;
}

}  // namespace espalier
