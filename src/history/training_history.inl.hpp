// What TrainingHistoryOn does, for every space: training_history.cpp and training_history.cu
// instantiate it.
#pragma once

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>

#include "espalier/base/arrays.hpp"
#include "espalier/history/training_history.hpp"

namespace espalier {

// `drawn`: only what is left of the sample was.
template <class Space>
Counters counts_of(const PrunedMinibatchOn<Space>& pruned, bool drawn) {
  auto counts = history_counters();
  const auto count = [&](const char* name, std::int64_t number) { counts.add(kHistoryGroup, name, number); };
  count("input_rows", pruned.after.inputs);
  count("edges", pruned.after.entries);
  count("input_rows_of_sample", pruned.before.inputs);
  count("edges_of_sample", pruned.before.entries);
  for (std::size_t l = 1; l < pruned.layers.size(); ++l) {
    count("needed_rows", pruned.layers[l].needed());
    count("hits", pruned.layers[l].cached.size());
  }
  for (const auto* name : {"input_rows_of_sample", "edges_of_sample"})
    if (drawn) counts.give_up(kHistoryGroup, name);
  return counts;
}

template <class Space>
TrainingHistoryOn<Space>::TrainingHistoryOn(const GridOn<Space>& grid, const Config& config,
                                            std::int64_t batches_per_step)
    : grid_(&grid),
      history_(config.history),
      batches_per_step_(batches_per_step),
      layers_(config.model.layers),
      shape_(history_shape(config)),
      can_hit_(history_.p_grad > 0 && history_.t_stale > kHistoryLag && history_.recompute < 1),
      share_(stable_share(history_.p_grad)),
      cache_(std::in_place_type<Lanes>) {
  if (history_.scope == "grid" && grid.host().ranks() > 1)
    cache_.template emplace<GridHistoryOn<Space>>(grid, shape_);
}

template <class Space>
Counters TrainingHistoryOn<Space>::counts_before_start(
    std::span<const MinibatchOn<Space>> minibatches) const {
  auto counts = history_counters();
  for (const auto& minibatch : minibatches) {
    for (const auto* name : {"input_rows", "input_rows_of_sample"})
      counts.add(kHistoryGroup, name, std::ssize(minibatch.vertices));
    for (const auto* name : {"edges", "edges_of_sample"})
      counts.add(kHistoryGroup, name, minibatch.sampled_edges());
    for (int layer = 1; layer < layers_; ++layer)
      counts.add(kHistoryGroup, "needed_rows", minibatch.blocks[layer - 1].rows);
  }
  return counts;
}

template <class Space>
std::int64_t TrainingHistoryOn<Space>::lane_number(std::int64_t batch) const {
  return history_.scope == "grid" ? 0 : batch % batches_per_step_;
}

template <class Space>
HistoryCacheOn<Space>& TrainingHistoryOn<Space>::lane(std::int64_t number) {
  auto& lanes = std::get<Lanes>(cache_);
  const auto found = lanes.find(number);
  return found != lanes.end() ? found->second : lanes.emplace(number, shape_).first->second;
}

template <class Space>
void TrainingHistoryOn<Space>::begin_step(const Space& space, std::int64_t step,
                                          std::span<const std::int64_t> batches) {
  if (auto* const of_grid = std::get_if<GridHistoryOn<Space>>(&cache_)) return of_grid->begin(space, step);
  auto& begun = begun_[step];
  for (const auto batch : batches)
    if (const auto number = lane_number(batch); begun.insert(number).second) lane(number).begin(space, step);
}

// work(space, m) for each minibatch, on threads of their own where there are enough of them.
template <class Space, class Work>
void for_each_minibatch(const Space& space, std::size_t minibatches, const Work& work) {
  if constexpr (std::is_same_v<Space, Cpu>) {
    if (minibatches > 1 && static_cast<int>(minibatches) >= space.threads) {
#pragma omp parallel for num_threads(space.threads) schedule(dynamic)
      for (std::size_t m = 0; m < minibatches; ++m) work(Cpu{1}, m);
      return;
    }
  }
  for (std::size_t m = 0; m < minibatches; ++m) work(space, m);
}

template <class Space>
void TrainingHistoryOn<Space>::begin(const Space& space, std::int64_t step,
                                     std::vector<MinibatchOn<Space>>& minibatches,
                                     PrunedStepOn<Space>& pruned, std::string_view label) {
  std::vector<std::int64_t> numbers;
  for (const auto& minibatch : minibatches) numbers.push_back(minibatch.number);
  begin_step(space, step, numbers);
  auto found = find(space, minibatches, label);
  pruned.pruned.resize(minibatches.size());
  for_each_minibatch(space, minibatches.size(), [&](const Space& share, std::size_t m) {
    pruned.pruned[m] = prune(share, minibatches[m], found[m].spans());
  });
  read(space, found, minibatches, pruned, label);
}

template <class Space>
void TrainingHistoryOn<Space>::draw(const Space& space, std::int64_t step, SamplerOn<Space>& sampler,
                                    const EpochPlan& plan, std::span<const std::int64_t> batches,
                                    std::vector<MinibatchOn<Space>>& minibatches, PrunedStepOn<Space>& pruned,
                                    std::string_view label) {
  begin_step(space, step, batches);
  const auto layers = static_cast<std::size_t>(layers_);
  std::vector<SeedBatch> seeds;
  for (const auto batch : batches) seeds.push_back(plan.batch(batch));
  std::vector<HistoryFoundOn<Space>> found;
  for (std::size_t m = 0; m < batches.size(); ++m) found.emplace_back(layers - 1);
  const auto find_hits = [&](int layer, std::span<const std::span<const std::int64_t>> lists) {
    std::vector<std::span<const std::uint8_t>> hits(lists.size());
    // As minibatches that have this list alone.
    std::vector<MinibatchOn<Space>> asked(lists.size());
    for (std::size_t m = 0; m < lists.size(); ++m) {
      asked[m] = {batches[m], lists[m], std::vector<BlockView<Space>>(layers), nullptr};
      asked[m].blocks[layer - 1].rows = std::ssize(lists[m]);
    }
    auto of_layer = find(space, asked, label);
    for (std::size_t m = 0; m < lists.size(); ++m) {
      auto& flags = found[m].hits[layer - 1] = std::move(of_layer[m].hits[layer - 1]);
      found[m].slots[layer - 1] = std::move(of_layer[m].slots[layer - 1]);
      found[m].recomputed[layer - 1] = std::move(of_layer[m].recomputed[layer - 1]);
      hits[m] = {flags.data(), flags.size()};
    }
    return hits;
  };
  auto sample =
      sample_needed<Space>(space, sampler, layers, seeds, plan.seed(), plan.epoch(), std::ref(find_hits));
  pruned.pruned = std::move(sample.minibatches);
  pruned.drawn.digest = sample.digest;
  for (const auto& of : pruned.pruned) {
    ++pruned.drawn.batches;
    pruned.drawn.sampled_edges += of.after.entries;
    pruned.drawn.input_rows += of.after.inputs;
  }
  minibatches.resize(batches.size());
  read(space, found, minibatches, pruned, label);
}

template <class Space>
std::vector<HistoryFoundOn<Space>> TrainingHistoryOn<Space>::find(
    const Space& space, std::span<const MinibatchOn<Space>> minibatches, std::string_view label) {
  std::vector<HistoryFoundOn<Space>> found(minibatches.size());
  if (auto* const of_grid = std::get_if<GridHistoryOn<Space>>(&cache_))
    of_grid->find(space, minibatches, found, label);
  else
    for_each_minibatch(space, minibatches.size(), [&](const Space& share, std::size_t m) {
      found[m] = lane_of(minibatches[m].number).find(share, minibatches[m]);
    });
  return found;
}

// What pruned minibatches need of history; they take the place of what they were.
template <class Space>
void TrainingHistoryOn<Space>::read(const Space& space, std::span<HistoryFoundOn<Space>> found,
                                    std::vector<MinibatchOn<Space>>& minibatches, PrunedStepOn<Space>& pruned,
                                    std::string_view label) {
  pruned.cached.resize(minibatches.size());
  pruned.recomputed.clear();
  for (auto& of : found) pruned.recomputed.push_back(std::move(of.recomputed));
  std::vector<HistoryReadOn<Space>> wanted;
  for (std::size_t m = 0; m < minibatches.size(); ++m) {
    const auto& without = pruned.pruned[m];
    pruned.counts.add(counts_of(without, pruned.drawn.batches > 0));
    pruned.cached[m].resize(without.layers.size());
    for (std::size_t l = 1; l < without.layers.size(); ++l)
      wanted.push_back({static_cast<int>(l), without.layers[l].cached.vertices, &pruned.cached[m][l]});
    minibatches[m] = {without.number, without.inputs(), without.blocks, without.memory};
  }
  if (auto* const of_grid = std::get_if<GridHistoryOn<Space>>(&cache_))
    return of_grid->read(space, wanted, label);
  for_each_minibatch(space, minibatches.size(), [&](const Space& share, std::size_t m) {
    const auto& without = pruned.pruned[m];
    for (std::size_t l = 1; l < without.layers.size(); ++l)
      lane_of(without.number)
          .read(share, found[m], static_cast<int>(l), without.layers[l].cached.positions,
                pruned.cached[m][l]);
  });
}

template <class Space>
void TrainingHistoryOn<Space>::note(const Space& space, std::int64_t step,
                                    const PrunedMinibatchOn<Space>& pruned,
                                    std::span<const Array<Space, std::uint8_t>> recomputed,
                                    Network<float, Space>& network, Counters& counts) {
  Array<Space, HistoryCandidate> candidates;
  for (int layer = 1; layer <= shape_.layers; ++layer) {
    const auto& rows = pruned.layers[static_cast<std::size_t>(layer)];
    const auto& drawn = recomputed[static_cast<std::size_t>(layer - 1)];
    score_rows(space, rows, network.needed_gradients(layer), candidates,
               drawn.empty() ? nullptr : drawn.data());
    const auto on_host = copy_from(space, candidates);
    counts.add(kHistoryGroup, "recomputed", std::ranges::count(on_host, true, &HistoryCandidate::recomputed));
    const auto choice = choose_history(on_host, share_);
    std::vector<HistoryWrite> writes;
    for (const auto& row : choice.admitted) writes.push_back({row.vertex, row.score, row.place});
    std::vector<std::int64_t> evicted;
    for (const auto& row : choice.evicted) evicted.push_back(row.vertex);
    counts.add(kHistoryGroup, "written", std::ssize(writes));
    counts.add(kHistoryGroup, "evicted", std::ssize(evicted));
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
  if (auto* const of_grid = std::get_if<GridHistoryOn<Space>>(&cache_)) {
    of_grid->end(space, step, label);
  } else {
    for (const auto number : begun_[step]) lane(number).end(step);
    begun_.erase(step);
  }
  most_bytes_ = std::max(most_bytes_, bytes_now());
}

template <class Space>
std::int64_t TrainingHistoryOn<Space>::bytes_now() const {
  if (const auto* const of_grid = std::get_if<GridHistoryOn<Space>>(&cache_)) return of_grid->part().bytes();
  std::int64_t sum = 0;
  for (const auto& [number, lane] : std::get<Lanes>(cache_)) sum += lane.bytes();
  return sum;
}

}  // namespace espalier
