#include "espalier/sample/minibatch.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

namespace espalier {

namespace {

// The hashes of so many edges are made step by step, each for all of them, by the vector unit.
constexpr std::int64_t kEdgesAtOnce = 512;

/// to[0 .. count) = value; writes up to 7 more.
void fill_lanes(std::uint64_t* to, std::int64_t count, std::uint64_t value) {
  for (std::int64_t k = 0; k < count; k += 8)
    for (int lane = 0; lane < 8; ++lane) to[k + lane] = value;
}

std::uint64_t digest_of_block(const BlockView<Cpu>& block, std::span<const std::int64_t> vertices,
                              std::uint64_t of_layer) {
  if (block.rows == 0) return 0;
  std::array<std::uint64_t, kEdgesAtOnce + 8> keys;
  std::uint64_t sum = 0;
  std::int64_t row = 0;
  const auto last = block.row_end(block.rows - 1);
  for (auto first = block.row_begin(0); first < last; first += kEdgesAtOnce) {
    const auto count = std::min(kEdgesAtOnce, last - first);
    for (std::int64_t k = 0; k < count;) {
      while (block.row_end(row) <= first + k) ++row;
      const auto end = std::min(count, block.row_end(row) - first);
      fill_lanes(keys.data() + k, end - k, absorb(of_layer, vertices[row]));
      k = end;
    }
    const auto* const sources = block.indices + first;
    for (std::int64_t k = 0; k < count; ++k) keys[k] = with_source(keys[k], vertices[sources[k]]);
    if (block.has_relations())
      for (std::int64_t k = 0; k < count; ++k)
        keys[k] = with_source(keys[k], 0, static_cast<std::uint64_t>(block.relation(first + k)));
    for (std::int64_t k = 0; k < count; ++k)
      sum += finish_edge(keys[k], std::bit_cast<std::uint32_t>(block.values[first + k]));
  }
  return sum;
}

}  // namespace

std::uint64_t sample_digest(const Minibatch& minibatch, std::int64_t first) {
  std::uint64_t sum = 0;
  for (std::size_t l = 0; l < minibatch.blocks.size(); ++l)
    sum += digest_of_block(minibatch.blocks[l], minibatch.vertices,
                           hash_of_layer(minibatch.number, first + static_cast<std::int64_t>(l)));
  return sum;
}

std::uint64_t sample_digests(const Cpu& cpu, std::span<const Minibatch> minibatches, std::int64_t first) {
  std::uint64_t digests = 0;
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 1) reduction(+ : digests)
  for (std::size_t b = 0; b < minibatches.size(); ++b) digests += sample_digest(minibatches[b], first);
  return digests;
}

}  // namespace espalier
