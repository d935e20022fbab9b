#include "extract.hpp"

#include <algorithm>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/sample/block_value.hpp"

namespace espalier {

std::vector<OwnedMinibatch> begin_minibatches(std::span<const SeedBatch> batches, std::size_t layers) {
  std::vector<OwnedMinibatch> minibatches(batches.size());
  for (std::size_t b = 0; b < batches.size(); ++b) {
    minibatches[b].number = batches[b].number;
    minibatches[b].vertices.assign(batches[b].seeds.begin(), batches[b].seeds.end());
    minibatches[b].blocks.resize(layers);
  }
  return minibatches;
}

StackedFrontier stack(const std::vector<OwnedMinibatch>& minibatches) {
  StackedFrontier frontier;
  for (const auto& minibatch : minibatches) frontier.add(minibatch.number, minibatch.vertices);
  return frontier;
}

Minibatch finish_minibatch(OwnedMinibatch minibatch) {
  const auto kept = std::make_shared<const OwnedMinibatch>(std::move(minibatch));
  return {kept->number, kept->vertices, views_of(kept->blocks), kept};
}

std::vector<Minibatch> finish_minibatches(std::vector<OwnedMinibatch> minibatches) {
  std::vector<Minibatch> finished;
  for (auto& minibatch : minibatches) finished.push_back(finish_minibatch(std::move(minibatch)));
  return finished;
}

template <class Index>
Block extract_block(const Cpu& cpu, std::span<const std::int64_t> offsets, std::span<const Index> picks,
                    std::span<const float> values, LocalIds& ids, Buffer<std::int64_t>& vertices) {
  Block block;
  block.rows = std::ssize(offsets) - 1;
  ESPALIER_CHECK(block.rows == std::ssize(vertices), "{} rows of picks for {} vertices", block.rows,
                 vertices.size());
  block.indptr.resize(offsets.size());
  block.indices.resize(picks.size());
  block.values.resize(picks.size());
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t r = 0; r <= block.rows; ++r) {
    const auto i = static_cast<std::size_t>(r);
    block.indptr[i] = offsets[i] - offsets[0];
    if (!values.empty() || r == block.rows) continue;
    const auto picked = offsets[i + 1] - offsets[i];
    if (picked > 0) std::fill_n(block.values.begin() + block.indptr[i], picked, mean_value(picked));
  }
  if (!values.empty()) std::ranges::copy(values, block.values.begin());
  ids.extend(cpu, picks, vertices, block.indices.data());
  block.columns = std::ssize(vertices);
  return block;
}

#define ESPALIER_INSTANTIATE(Index)                                                               \
  template Block extract_block(const Cpu&, std::span<const std::int64_t>, std::span<const Index>, \
                               std::span<const float>, LocalIds&, Buffer<std::int64_t>&);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
