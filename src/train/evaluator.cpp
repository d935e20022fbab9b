#include "espalier/train/evaluator.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "espalier/train/metrics.hpp"

namespace espalier {

Evaluator::Evaluator(const Grid& grid, Sampler& whole_rows, const FeatureStore& features,
                     const Targets& targets, std::int64_t edges, std::int64_t chunk_bytes)
    : grid_(grid),
      whole_rows_(whole_rows),
      features_(features),
      targets_(targets),
      mean_degree_(static_cast<double>(edges) /
                   static_cast<double>(std::max<std::int64_t>(1, features.partition().rows()))),
      chunk_bytes_(chunk_bytes),
      shares_(block_partition(features.partition().size(grid.row()), grid.replication())) {}

// Rows whose distinct neighbours, all remote at worst, fit in chunk_bytes; the same on every rank.
std::int64_t Evaluator::chunk_rows(std::int64_t width) const {
  const double bytes_per_row = (mean_degree_ + 1) * (static_cast<double>(width) * 4 + 64);
  return std::max<std::int64_t>(64,
                                static_cast<std::int64_t>(static_cast<double>(chunk_bytes_) / bytes_per_row));
}

Matrix<float> Evaluator::compute_layer(const Cpu& cpu, const Network<float>& network, int layer,
                                       const FeatureStore& input, Scratch& scratch) const {
  const auto first = input.partition().begin(grid_.row());
  const auto begin = shares_.begin(grid_.column()), end = shares_.end(grid_.column());
  const auto step = chunk_rows(input.width());
  const auto chunks = grid_.world().all_reduce((end - begin + step - 1) / step, Reduction::kMax, "evaluate");

  Matrix<float> mine(end - begin, network.output_width(layer)), output;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const auto from = std::min(begin + chunk * step, end), to = std::min(from + step, end);
    std::vector<std::int64_t> vertices(static_cast<std::size_t>(to - from));
    std::iota(vertices.begin(), vertices.end(), first + from);
    const SeedBatch batch = {0, vertices};
    const auto sampled = whole_rows_.sample(cpu, {&batch, from < to ? std::size_t{1} : 0}, 0, 0);
    std::vector<std::span<const std::int64_t>> lists;
    for (const auto& minibatch : sampled) lists.emplace_back(minibatch.vertices);
    input.fetch(cpu, lists, scratch.rows, "evaluate");
    for (const auto& minibatch : sampled) {
      auto& result = chunks == 1 ? mine : output;
      network.evaluate_layer(cpu, layer, minibatch.blocks[0], scratch.rows[0], scratch.product, result);
      if (chunks > 1) std::ranges::copy(output.data, mine.row(from - begin));
    }
  }
  if (grid_.replication() == 1) return mine;
  Matrix<float> block;
  block.rows = input.partition().size(grid_.row());
  block.columns = mine.columns;
  block.data = grid_.row_comm().all_gather_v(std::span<const float>(mine.data), "evaluate");
  return block;
}

Metrics Evaluator::judge(const Matrix<float>& logits, const Buffer<std::int64_t>& split) const {
  // My share of the vertices of my block row: labels outside of the split are hidden.
  const auto first = targets_.partition.begin(grid_.row());
  const auto begin = shares_.begin(grid_.column()), end = shares_.end(grid_.column());
  std::vector<std::int32_t> labels(static_cast<std::size_t>(logits.rows), -1);
  for (auto at = std::lower_bound(split.begin(), split.end(), first + begin);
       at != split.end() && *at < first + end; ++at)
    labels[static_cast<std::size_t>(*at - first)] =
        targets_.local_labels[static_cast<std::size_t>(*at - first)];
  auto counts = empty_class_counts(targets_.classes);
  count_classes(logits, labels, counts);
  grid_.world().all_reduce(std::span<std::int64_t>(counts), Reduction::kSum, "evaluate");
  std::int64_t judged = 0;
  for (std::size_t c = 0; c < counts.size(); c += 3) judged += counts[c] + counts[c + 2];  // tp + fn
  return {accuracy(counts), macro_f1(counts), judged};
}

Evaluation Evaluator::evaluate(const Cpu& cpu, const Network<float>& network) const {
  std::optional<FeatureStore> hidden;
  Scratch scratch;
  const int layers = network.shape().layers;
  for (int layer = 1; layer < layers; ++layer) {
    auto block = compute_layer(cpu, network, layer, hidden ? *hidden : features_, scratch);
    hidden.emplace(grid_, features_.partition(), std::move(block));
  }
  const auto logits = compute_layer(cpu, network, layers, hidden ? *hidden : features_, scratch);
  return {judge(logits, targets_.valid), judge(logits, targets_.test)};
}

}  // namespace espalier
