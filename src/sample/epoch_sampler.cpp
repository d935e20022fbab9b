#include "epoch_sampler.inl.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "espalier/sample/counted_work.hpp"

namespace espalier {

SampleCounts sum_over_ranks(const SampleCounts& mine, const Communicator& comm) {
  std::uint64_t sums[] = {mine.digest, static_cast<std::uint64_t>(mine.batches),
                          static_cast<std::uint64_t>(mine.sampled_edges),
                          static_cast<std::uint64_t>(mine.input_rows)};
  comm.all_reduce(std::span<std::uint64_t>(sums), Reduction::kSum, "report");
  return {sums[0], static_cast<std::int64_t>(sums[1]), static_cast<std::int64_t>(sums[2]),
          static_cast<std::int64_t>(sums[3])};
}

template class EpochSamplerOn<Cpu>;

std::int64_t automatic_bulk(const SamplerShape& shape, const SamplerKind& kind, std::int64_t batch_size,
                            std::int64_t batches, int ranks, int block_rows, std::int64_t nodes,
                            std::int64_t edges, std::int64_t bytes) {
  const double n = std::max<double>(1, static_cast<double>(nodes));
  const double mean_degree = static_cast<double>(edges) / n;
  // Of an entry of a frontier's row: whole rows come from their owners (index and value), or sums
  // of them (index and sum) and their parts. Where every row is here a GPU may mark entries.
  const double per_entry = block_rows == 1 ? 20.0 / 32 : kind.layer_wise ? 24 : 8;
  const auto layers = shape.fanout.size();
  const auto size = rough_size(kind, shape.fanout, static_cast<double>(batch_size), n, mean_degree);
  double needed = 0;
  for (std::size_t k = 0; k < (kind.induces ? 1 : layers); ++k) {  // one block for all layers
    const double rows = size.rows[layers - k];
    needed += std::min(rows * 4 * mean_degree, static_cast<double>(edges)) * per_entry;
    // Per edge: global id, value, local id, value, and, in a graph so large that ids go by hash, a
    // slot of its table at load one half; per row: views and offsets; per pick of a layer: the
    // draw, what was removed, column, factor, slot, vertex.
    needed += size.entries[layers - k] * (8 + 4 + 4 + 4 + (kind.layer_wise ? 0 : 32)) + rows * 64;
    const auto picks = shape.fanout[k];
    if (kind.layer_wise) needed += 160 * (picks < 0 ? n : std::min(static_cast<double>(picks), n));
  }
  const double per_rank = std::max(1.0, std::floor(static_cast<double>(bytes) / needed));
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::min(per_rank * ranks, 1e15)), 1,
                                  std::max<std::int64_t>(batches, 1));
}

}  // namespace espalier
