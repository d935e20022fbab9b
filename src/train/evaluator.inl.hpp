// What EvaluatorOn does, for every space: evaluator.cpp and evaluator.cu instantiate it.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "espalier/train/evaluator.hpp"

namespace espalier {

template <class Space>
EvaluatorOn<Space>::EvaluatorOn(const GridOn<Space>& grid, SamplerOn<Space>& whole_rows,
                                const InputStoresOn<Space>& input, const Ownership& ownership,
                                const TaskOn<Space>& task, const EntriesOfRows& entries, PassMemory memory)
    : input_(input), task_(task), pass_(grid, whole_rows, ownership, entries, std::move(memory)) {}

template <class Space>
std::optional<Evaluation> EvaluatorOn<Space>::evaluate(const Space& space,
                                                       const Network<float, Space>& network,
                                                       const std::function<bool()>& goes_on) const {
  KeptRowsOn<Space> logits(pass_.rows(), network.output_width(network.stages()));
  std::vector<RowSinkOn<Space>*> sinks(static_cast<std::size_t>(network.stages()), nullptr);
  sinks.back() = &logits;
  if (!pass_.run(space, network, input_, sinks, goes_on)) return {};
  return task_.judge(space, logits.release(), network.task_tensors());
}

}  // namespace espalier
