// Exact evaluation: the network over the whole graph, layer by layer, without sampling.
//
// A layer-wise pass (infer/layerwise_pass.hpp) gives the logits of all vertices, chunk by chunk;
// every rank evaluates its share of them as they come. Metrics do not depend on the grid.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "espalier/base/execution.hpp"
#include "espalier/infer/layerwise_pass.hpp"
#include "espalier/train/evaluation.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

template <class Space>
class EvaluatorOn {
 public:
  /// What the pass is made of; all must outlive it. `ownership`: of the vertices.
  EvaluatorOn(const GridOn<Space>& grid, SamplerOn<Space>& whole_rows, const InputStoresOn<Space>& input,
              const Ownership& ownership, const TaskOn<Space>& task, const EntriesOfRows& entries,
              PassMemory memory)
      : input_(input), task_(task), pass_(grid, whole_rows, ownership, entries, std::move(memory)) {}

  /// Collective over the grid. `goes_on` is asked when a chunk of a layer is done, on all ranks
  /// together; where it says false, on all of them, evaluation is given up, and there is no result.
  std::optional<Evaluation> evaluate(const Space& space, const Network<float, Space>& network,
                                     const std::function<bool()>& goes_on) const {
    const auto evaluator = task_.evaluator();
    std::vector<RowSinkOn<Space>*> sinks(static_cast<std::size_t>(network.stages()), nullptr);
    sinks.back() = evaluator.get();
    if (!pass_.run(space, network, input_, sinks, goes_on)) return {};
    return evaluator->finish(space, network.task_tensors());
  }
  /// The same, to its end.
  Evaluation evaluate(const Space& space, const Network<float, Space>& network) const {
    return *evaluate(space, network, {});
  }

  /// Collective over the grid. What the network gives for all vertices: `sink` takes the rows of
  /// this rank's share.
  void infer(const Space& space, const Network<float, Space>& network, RowSinkOn<Space>& sink) const {
    std::vector<RowSinkOn<Space>*> sinks(static_cast<std::size_t>(network.stages()), nullptr);
    sinks.back() = &sink;
    pass_.run(space, network, input_, sinks, {});
  }
  /// Part r: the vertices of rank r's share.
  const Ownership& shares() const { return pass_.shares(); }

 private:
  const InputStoresOn<Space>& input_;
  const TaskOn<Space>& task_;
  LayerwisePassOn<Space> pass_;
};

using Evaluator = EvaluatorOn<Cpu>;

}  // namespace espalier
