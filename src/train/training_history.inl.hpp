// What TrainingHistoryOn does, for every space: training_history.cpp and training_history.cu
// instantiate it.
#pragma once

#include <algorithm>
#include <utility>

#include "espalier/base/arrays.hpp"
#include "espalier/train/training_history.hpp"

namespace espalier {

inline HistoryShape history_shape(const Config& config) {
  HistoryShape shape;
  for (int layer = 1; layer < static_cast<int>(config.model.layers); ++layer) shape.layers.push_back(layer);
  shape.width = config.model.hidden;
  shape.precision = history_precision_of(config.history.stored);
  shape.t_stale = config.history.t_stale;
  shape.lag = static_cast<int>(config.history.lag);
  shape.entries = config.history.entries;
  return shape;
}

template <class Space>
HistoryCounts counts_of(const PrunedMinibatchOn<Space>& pruned) {
  HistoryCounts counts = {.inputs_before = pruned.before.inputs,
                          .inputs = pruned.after.inputs,
                          .entries_before = pruned.before.entries,
                          .entries = pruned.after.entries};
  for (std::size_t l = 1; l < pruned.layers.size(); ++l) {
    counts.needed += pruned.layers[l].needed();
    counts.hits += pruned.layers[l].cached.size();
  }
  return counts;
}

template <class Space>
TrainingHistoryOn<Space>::TrainingHistoryOn(const GridOn<Space>& grid, const Config& config,
                                            std::int64_t batches_per_step)
    : history_(config.history),
      batches_per_step_(batches_per_step),
      shape_(history_shape(config)),
      can_hit_(history_.p_grad > 0 && history_.t_stale > history_.lag),
      share_(stable_share(history_.p_grad)),
      cache_(std::in_place_type<Lanes>) {
  if (history_.scope == "grid") cache_.template emplace<GridHistoryOn<Space>>(grid, shape_);
}

template <class Space>
HistoryCacheOn<Space>& TrainingHistoryOn<Space>::lane_of(std::int64_t batch) {
  auto& lanes = std::get<Lanes>(cache_);
  const auto lane = batch % batches_per_step_;
  const auto found = lanes.find(lane);
  return found != lanes.end() ? found->second : lanes.emplace(lane, shape_).first->second;
}

template <class Space>
void TrainingHistoryOn<Space>::begin(const Space& space, std::int64_t step,
                                     std::vector<MinibatchOn<Space>>& minibatches,
                                     PrunedStepOn<Space>& pruned, std::string_view label) {
  std::vector<HistoryFoundOn<Space>> found;
  auto* const of_grid = std::get_if<GridHistoryOn<Space>>(&cache_);
  if (of_grid != nullptr) {
    of_grid->begin(space, step);
    of_grid->find(space, minibatches, found, label);
  } else {
    for (const auto& minibatch : minibatches) {
      auto& lane = lane_of(minibatch.number);
      lane.begin(space, step);
      begun_[step].push_back(minibatch.number);
      found.push_back(lane.find(space, minibatch));
    }
  }
  pruned.sampled = minibatches;
  pruned.cached.resize(minibatches.size());
  std::vector<HistoryReadOn<Space>> wanted;
  for (std::size_t m = 0; m < minibatches.size(); ++m) {
    const auto spans = found[m].spans();
    auto& without = pruned.pruned.emplace_back(prune(space, minibatches[m], spans));
    pruned.counts.add(counts_of(without));
    auto& cached = pruned.cached[m];
    cached.resize(without.layers.size());
    for (std::size_t l = 1; l < without.layers.size(); ++l) {
      const auto& rows = without.layers[l].cached;
      if (of_grid != nullptr)
        wanted.push_back({static_cast<int>(l), rows.vertices, &cached[l]});
      else
        lane_of(minibatches[m].number).read(space, found[m], static_cast<int>(l), rows.positions, cached[l]);
    }
    minibatches[m] = {without.number, without.inputs(), without.blocks, without.memory};
  }
  if (of_grid != nullptr) of_grid->read(space, wanted, label);
}

template <class Space>
void TrainingHistoryOn<Space>::note(const Space& space, std::int64_t step,
                                    const PrunedMinibatchOn<Space>& pruned, Network<float, Space>& network,
                                    HistoryCounts& counts) {
  Array<Space, HistoryCandidate> candidates;
  for (const int layer : shape_.layers) {
    const auto& rows = pruned.layers[static_cast<std::size_t>(layer)];
    score_rows(space, rows, network.needed_gradients(layer), candidates);
    const auto on_host = copy_from(space, candidates);
    const auto choice = choose_history(on_host, share_);
    std::vector<HistoryWrite> writes;
    for (const auto& row : choice.admitted) writes.push_back({row.vertex, row.score, row.place});
    std::vector<std::int64_t> evicted;
    for (const auto& row : choice.evicted) evicted.push_back(row.vertex);
    counts.written += std::ssize(writes);
    counts.evicted += std::ssize(evicted);
    const ConstMatrixView<float, Space> computed = network.computed_rows(layer);
    if (auto* const of_grid = std::get_if<GridHistoryOn<Space>>(&cache_)) {
      of_grid->write(space, step, pruned.number, layer, writes, computed);
      of_grid->evict(step, layer, evicted);
    } else {
      auto& lane = lane_of(pruned.number);
      lane.write(space, step, pruned.number, layer, writes, computed);
      lane.evict(step, layer, evicted);
    }
  }
}

template <class Space>
void TrainingHistoryOn<Space>::end(const Space& space, std::int64_t step, std::string_view label) {
  if (auto* const of_grid = std::get_if<GridHistoryOn<Space>>(&cache_))
    return of_grid->end(space, step, label);
  for (const auto batch : begun_[step]) lane_of(batch).end(step);
  begun_.erase(step);
}

}  // namespace espalier
