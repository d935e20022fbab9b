// What EvaluatorOn does, for every space: evaluator.cpp and evaluator.cu instantiate it. They say
// how the space copies rows and gathers a block (copy_rows_to, gather_block).
#pragma once

#include <algorithm>
#include <numeric>
#include <optional>

#include "espalier/train/evaluator.hpp"

namespace espalier {

// to[..] = all rows of `rows`.
void copy_rows_to(const Cpu&, const Matrix<float>& rows, float* to);
void copy_rows_to(const Cuda&, const Matrix<float, Cuda>& rows, float* to);

// block = the rows of all ranks of the group one after another, counts[r] numbers of rank r.
// Collective.
void gather_block(const Communicator& group, const Matrix<float>& mine, std::span<const std::int64_t> counts,
                  Matrix<float>& block);
void gather_block(const DeviceCommunicator& group, const Matrix<float, Cuda>& mine,
                  std::span<const std::int64_t> counts, Matrix<float, Cuda>& block);

template <class Space>
EvaluatorOn<Space>::EvaluatorOn(const GridOn<Space>& grid, SamplerOn<Space>& whole_rows,
                                const FeatureStoreOn<Space>& features, const TaskOn<Space>& task,
                                std::int64_t edges, std::int64_t chunk_bytes)
    : collectives_(grid),
      grid_(grid.host()),
      whole_rows_(whole_rows),
      features_(features),
      task_(task),
      mean_degree_(static_cast<double>(edges) /
                   static_cast<double>(std::max<std::int64_t>(1, features.partition().rows()))),
      chunk_bytes_(chunk_bytes),
      shares_(block_partition(features.partition().size(grid_.row()), grid_.replication())) {}

template <class Space>
std::int64_t EvaluatorOn<Space>::chunk_rows(std::int64_t width) const {
  return evaluation_chunk_rows(mean_degree_, width, chunk_bytes_);
}

template <class Space>
std::optional<Matrix<float, Space>> EvaluatorOn<Space>::compute_layer(
    const Space& space, const Network<float, Space>& network, int layer, const FeatureStoreOn<Space>& input,
    Scratch& scratch, const std::function<bool()>& goes_on) const {
  const auto first = input.partition().begin(grid_.row());
  const auto begin = shares_.begin(grid_.column()), end = shares_.end(grid_.column());
  const auto step = chunk_rows(input.width());
  const auto chunks = grid_.world().all_reduce((end - begin + step - 1) / step, Reduction::kMax, "evaluate");

  Matrix<float, Space> mine(end - begin, network.output_width(layer)), output;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const auto from = std::min(begin + chunk * step, end), to = std::min(from + step, end);
    std::vector<std::int64_t> vertices(to - from);
    std::iota(vertices.begin(), vertices.end(), first + from);
    const SeedBatch batch = {0, vertices};
    const auto sampled = whole_rows_.sample(space, {&batch, from < to ? std::size_t{1} : 0}, 0, 0);
    std::vector<std::span<const std::int64_t>> lists;
    for (const auto& minibatch : sampled) lists.emplace_back(minibatch.vertices);
    input.fetch(space, lists, scratch.rows, "evaluate");
    for (const auto& minibatch : sampled) {
      auto& result = chunks == 1 ? mine : output;
      network.evaluate_layer(space, layer, minibatch.blocks[0], scratch.rows[0], scratch.product, result);
      if (chunks > 1) copy_rows_to(space, output, mine.row(from - begin));
    }
    if (goes_on && !goes_on()) return {};
  }
  if (grid_.replication() == 1) return mine;
  Matrix<float, Space> block(input.partition().size(grid_.row()), mine.columns);
  std::vector<std::int64_t> counts;
  for (int r = 0; r < grid_.replication(); ++r) counts.push_back(shares_.size(r) * mine.columns);
  gather_block(collectives_.row_comm(), mine, counts, block);
  return block;
}

template <class Space>
std::optional<Evaluation> EvaluatorOn<Space>::evaluate(const Space& space,
                                                       const Network<float, Space>& network,
                                                       const std::function<bool()>& goes_on) const {
  std::optional<FeatureStoreOn<Space>> hidden;
  Scratch scratch;
  const int layers = network.shape().layers;
  for (int layer = 1; layer < layers; ++layer) {
    auto block = compute_layer(space, network, layer, hidden ? *hidden : features_, scratch, goes_on);
    if (!block) return {};
    hidden.emplace(collectives_, features_.partition(), std::move(*block));
  }
  const auto logits = compute_layer(space, network, layers, hidden ? *hidden : features_, scratch, goes_on);
  if (!logits) return {};
  return task_.judge(space, *logits, features_.partition().begin(grid_.row()));
}

}  // namespace espalier
