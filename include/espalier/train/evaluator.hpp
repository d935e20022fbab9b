// Exact evaluation: the network over the whole graph, layer by layer, without sampling.
//
// A layer-wise pass (infer/layerwise_pass.hpp) gives the logits of all vertices; every rank counts
// its share of them against the labels of each split. Metrics do not depend on the grid.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "espalier/base/execution.hpp"
#include "espalier/infer/layerwise_pass.hpp"
#include "espalier/train/targets.hpp"

namespace espalier {

struct Metrics {
  double accuracy = 0;
  double macro_f1 = 0;
  std::int64_t vertices = 0;  ///< how many were judged; 0: the split is empty
};

struct Evaluation {
  Metrics train;
  Metrics valid;
  Metrics test;
};

/// Counts the logits of vertices against the labels of the three splits, as a sink of a pass.
template <class Space>
class JudgeOn final : public RowSinkOn<Space> {
 public:
  /// On a rank of block row `row`. The targets must outlive it.
  JudgeOn(const Targets& targets, int row);

  void take(const Space& space, std::int64_t first, Matrix<float, Space>& logits) override {
    count(space, first, logits, first, first + logits.rows);
  }

  /// Counts the vertices begin .. end of the logits [rows, classes] of the vertices from `first`
  /// on, all of my block row; each once. Local.
  void count(const Space& space, std::int64_t first, const Matrix<float, Space>& logits, std::int64_t begin,
             std::int64_t end);

  /// Collective: one reduction for all splits and ranks.
  Evaluation result(const Communicator& world) const;

 private:
  const Targets& targets_;
  std::int64_t first_label_;          ///< the vertex of targets.local_labels[0]
  std::vector<std::int64_t> counts_;  ///< class counts (metrics.hpp) of train, valid, test in turn
};

template <class Space>
class EvaluatorOn {
 public:
  /// What the pass is made of; all must outlive it.
  EvaluatorOn(const GridOn<Space>& grid, SamplerOn<Space>& whole_rows, const FeatureStoreOn<Space>& features,
              const Targets& targets, std::int64_t edges, std::int64_t chunk_bytes);

  /// Collective over the grid. `goes_on` is asked when a chunk of a layer is done, on all ranks
  /// together; where it says false, on all of them, evaluation is given up, and there is no result.
  std::optional<Evaluation> evaluate(const Space& space, const Network<float, Space>& network,
                                     const std::function<bool()>& goes_on) const;
  /// The same, to its end.
  Evaluation evaluate(const Space& space, const Network<float, Space>& network) const {
    return *evaluate(space, network, {});
  }

 private:
  const Grid& grid_;
  const FeatureStoreOn<Space>& features_;
  const Targets& targets_;
  LayerwisePassOn<Space> pass_;
};

using Evaluator = EvaluatorOn<Cpu>;

}  // namespace espalier
