// What EvaluatorOn and JudgeOn do, for every space: evaluator.cpp and evaluator.cu
// instantiate them.
#pragma once

#include <algorithm>
#include <optional>

#include "espalier/train/evaluator.hpp"
#include "espalier/train/metrics.hpp"

namespace espalier {

template <class Space>
JudgeOn<Space>::JudgeOn(const Targets& targets, int row)
    : targets_(targets),
      first_label_(targets.partition.begin(row)),
      counts_(3 * empty_class_counts(targets.classes).size(), 0) {}

template <class Space>
void JudgeOn<Space>::count(const Space& space, std::int64_t first, const Matrix<float, Space>& logits,
                           std::int64_t begin, std::int64_t end) {
  auto* counts = counts_.data();
  for (const auto* split : {&targets_.train, &targets_.valid, &targets_.test}) {
    // Labels outside of the split are hidden.
    std::vector<std::int32_t> labels(logits.rows, -1);
    for (auto at = std::lower_bound(split->begin(), split->end(), begin); at != split->end() && *at < end;
         ++at)
      labels[*at - first] = targets_.local_labels[*at - first_label_];
    for (const auto found : class_counts(space, logits, labels)) *counts++ += found;
  }
}

inline Metrics metrics_of(std::span<const std::int64_t> counts) {
  std::int64_t judged = 0;
  // tp + fn
  for (std::size_t c = 0; c < counts.size(); c += 3) judged += counts[c] + counts[c + 2];
  return {accuracy(counts), macro_f1(counts), judged};
}

template <class Space>
Evaluation JudgeOn<Space>::result(const Communicator& world) const {
  auto counts = counts_;
  world.all_reduce(std::span<std::int64_t>(counts), Reduction::kSum, "evaluate");
  const auto of_split = [&](std::size_t s) {
    const auto length = counts.size() / 3;
    return metrics_of(std::span<const std::int64_t>(counts).subspan(s * length, length));
  };
  return {of_split(0), of_split(1), of_split(2)};
}

template <class Space>
EvaluatorOn<Space>::EvaluatorOn(const GridOn<Space>& grid, SamplerOn<Space>& whole_rows,
                                const FeatureStoreOn<Space>& features, const Targets& targets,
                                std::int64_t edges, std::int64_t chunk_bytes)
    : grid_(grid.host()),
      features_(features),
      targets_(targets),
      pass_(grid, whole_rows, features.partition(), edges, chunk_bytes) {}

template <class Space>
std::optional<Evaluation> EvaluatorOn<Space>::evaluate(const Space& space,
                                                       const Network<float, Space>& network,
                                                       const std::function<bool()>& goes_on) const {
  const auto logits = pass_.block_of_layer(space, network, network.stages(), features_, goes_on);
  if (!logits) return {};
  JudgeOn<Space> judge(targets_, grid_.row());
  const auto& share = pass_.share();
  judge.count(space, targets_.partition.begin(grid_.row()), *logits, share.first, share.first + share.count);
  return judge.result(grid_.world());
}

}  // namespace espalier
