#include "espalier/sample/minibatch.hpp"

#include <array>
#include <bit>

namespace espalier {

namespace {

// Edges wait here until there are enough of them for the vector unit.
class EdgeHashes {
 public:
  void add(std::uint64_t of_row_and_source, float value) {
    keys_[count_] = of_row_and_source;
    bits_[count_] = std::bit_cast<std::uint32_t>(value);
    if (++count_ == kEdges) flush();
  }
  std::uint64_t sum() {
    flush();
    return sum_;
  }

 private:
  void flush() {
    for (std::size_t k = 0; k < count_; ++k) sum_ += finish_edge(keys_[k], bits_[k]);
    count_ = 0;
  }

  static constexpr std::size_t kEdges = 512;
  std::array<std::uint64_t, kEdges> keys_;
  std::array<std::uint32_t, kEdges> bits_;
  std::size_t count_ = 0;
  std::uint64_t sum_ = 0;
};

}  // namespace

std::uint64_t sample_digest(const Minibatch& minibatch, std::int64_t first) {
  EdgeHashes hashes;
  for (std::size_t l = 0; l < minibatch.blocks.size(); ++l) {
    const auto& block = minibatch.blocks[l];
    const auto of_layer = hash_of_layer(minibatch.number, first + static_cast<std::int64_t>(l));
    for (std::int64_t row = 0; row < block.rows; ++row) {
      const auto of_row = absorb(of_layer, minibatch.vertices[row]);
      for (auto k = block.row_begin(row); k < block.row_end(row); ++k) {
        const auto source = minibatch.vertices[block.indices[k]];
        const auto relation = static_cast<std::uint64_t>(block.relation(k));
        hashes.add(with_source(of_row, source, relation), block.values[k]);
      }
    }
  }
  return hashes.sum();
}

std::uint64_t sample_digests(const Cpu& cpu, std::span<const Minibatch> minibatches, std::int64_t first) {
  std::uint64_t digests = 0;
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 1) reduction(+ : digests)
  for (std::size_t b = 0; b < minibatches.size(); ++b) digests += sample_digest(minibatches[b], first);
  return digests;
}

}  // namespace espalier
