// What TrainingHistoryOn does, for every space: training_history.cpp and training_history.cu
// instantiate it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>

#include "espalier/base/arrays.hpp"
#include "espalier/train/training_history.hpp"

namespace espalier {

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
                                            std::int64_t batches_per_step, SamplerOn<Space>* whole_rows)
    : grid_(&grid),
      history_(config.history),
      batches_per_step_(batches_per_step),
      whole_rows_(whole_rows),
      layers_(config.model.layers),
      shape_(history_shape(config)),
      can_hit_((history_.p_grad > 0 || whole_rows != nullptr) && history_.t_stale > history_.lag),
      share_(stable_share(history_.p_grad)),
      cache_(std::in_place_type<Lanes>) {
  ESPALIER_CHECK((history_.kind == "variate") == draws(), "history.kind = {} {} whole rows", history_.kind,
                 draws() ? "with" : "without");
  if (history_.scope == "grid" && grid.host().ranks() > 1)
    cache_.template emplace<GridHistoryOn<Space>>(grid, shape_);
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
void TrainingHistoryOn<Space>::expect(const Space& space,
                                      std::span<const ExpectedMinibatchOn<Space>> minibatches,
                                      std::int64_t first, std::int64_t end, std::string_view label) {
  if (auto* const of_grid = std::get_if<GridHistoryOn<Space>>(&cache_))
    return of_grid->expect(space, minibatches, first, end, label);
  std::map<std::int64_t, std::vector<ExpectedMinibatchOn<Space>>> of_lanes;
  for (const auto& expected : minibatches)
    of_lanes[lane_number(expected.minibatch->number)].push_back(expected);
  for (const auto& [number, of_lane] : of_lanes) lane(number).expect(space, of_lane, end);
}

template <class Space>
void TrainingHistoryOn<Space>::begin(const Space& space, std::int64_t step,
                                     std::vector<MinibatchOn<Space>>& minibatches,
                                     PrunedStepOn<Space>& pruned, std::string_view label) {
  std::vector<std::int64_t> numbers;
  for (const auto& minibatch : minibatches) numbers.push_back(minibatch.number);
  begin_step(space, step, numbers);
  if (draws()) return begin_variates(space, minibatches, pruned, label);
  const auto found = find(space, minibatches, label);
  pruned.sampled = minibatches;
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
  for (const auto batch : batches) seeds.push_back({batch, plan.seeds(batch)});
  std::vector<HistoryFoundOn<Space>> found(batches.size());
  for (auto& of : found) {
    of.hits.resize(layers - 1);
    of.slots.resize(layers - 1);
  }
  const auto find_hits = [&](int layer, std::span<const std::span<const std::int64_t>> lists) {
    std::vector<std::span<const std::uint8_t>> hits(lists.size());
    if (std::ranges::find(shape_.layers, layer) == shape_.layers.end()) return hits;
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
void TrainingHistoryOn<Space>::read(const Space& space, std::span<const HistoryFoundOn<Space>> found,
                                    std::vector<MinibatchOn<Space>>& minibatches, PrunedStepOn<Space>& pruned,
                                    std::string_view label) {
  pruned.cached.resize(minibatches.size());
  std::vector<HistoryReadOn<Space>> wanted;
  for (std::size_t m = 0; m < minibatches.size(); ++m) {
    const auto& without = pruned.pruned[m];
    pruned.counts.add(counts_of(without));
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
    write(space, step, pruned.number, layer, writes, network.computed_rows(layer));
    if (auto* const of_grid = std::get_if<GridHistoryOn<Space>>(&cache_))
      of_grid->evict(step, layer, evicted);
    else
      lane_of(pruned.number).evict(step, layer, evicted);
  }
}

template <class Space>
void TrainingHistoryOn<Space>::write(const Space& space, std::int64_t step, std::int64_t batch, int layer,
                                     std::span<const HistoryWrite> writes,
                                     ConstMatrixView<float, Space> rows) {
  if (auto* const of_grid = std::get_if<GridHistoryOn<Space>>(&cache_))
    of_grid->write(space, step, batch, layer, writes, rows);
  else
    lane_of(batch).write(space, step, batch, layer, writes, rows);
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

// ---- State --------------------------------------------------------------------------------------

inline constexpr std::int64_t kRecordWords = 10;

inline void put_words(std::uint64_t value, std::uint32_t* to) {
  to[0] = static_cast<std::uint32_t>(value);
  to[1] = static_cast<std::uint32_t>(value >> 32);
}
inline std::uint64_t take_words(const std::uint32_t* from) {
  return from[0] | static_cast<std::uint64_t>(from[1]) << 32;
}

// A record does not know what number a step had: another job may count its steps otherwise.
inline void put_record(const HistoryRecord& record, std::int64_t next, std::uint32_t* to) {
  to[0] = static_cast<std::uint32_t>(record.kind);
  to[1] = static_cast<std::uint32_t>(record.layer);
  put_words(static_cast<std::uint64_t>(record.batch), to + 2);
  put_words(static_cast<std::uint64_t>(record.vertex), to + 4);
  put_words(static_cast<std::uint64_t>(next - record.stamp), to + 6);
  put_words(record.score, to + 8);
}

inline HistoryRecord take_record(const std::uint32_t* from, std::int64_t next) {
  return {
      static_cast<HistoryRecord::Kind>(from[0]),       static_cast<int>(from[1]),
      static_cast<std::int64_t>(take_words(from + 4)), next - static_cast<std::int64_t>(take_words(from + 6)),
      static_cast<std::int64_t>(take_words(from + 2)), take_words(from + 8)};
}

// Words as a StateTensor moves them.
inline std::uint32_t* as_words(float* values) {
  return reinterpret_cast<std::uint32_t*>(values);
}

template <class Space>
std::int64_t TrainingHistoryOn<Space>::parts() const {
  return history_.scope == "grid" ? kHistoryShards : batches_per_step_;
}

template <class Space>
int TrainingHistoryOn<Space>::rank_of_part(std::int64_t part) const {
  const int ranks = grid_->host().ranks();
  if (const auto* const of_grid = std::get_if<GridHistoryOn<Space>>(&cache_))
    return of_grid->rank_of_shard(static_cast<int>(part));
  return static_cast<int>(part % ranks);  // of a lane: as EpochPlan deals batches
}

template <class Space>
std::string TrainingHistoryOn<Space>::tensor_name(const char* what) const {
  return fmt::format("history/{}-{}/{}", history_.scope, history_.stored, what);
}

template <class Space>
std::vector<StateTensor> TrainingHistoryOn<Space>::state(const Space& space, std::int64_t next) {
  // Records that lie together in the file, and whose they are.
  struct Run {
    RowRange rows;
    const HistoryCacheOn<Space>* cache;
    std::vector<HistoryRecord> records;
  };
  const auto runs = std::make_shared<std::vector<Run>>();
  const auto counts = std::make_shared<std::vector<std::int64_t>>(static_cast<std::size_t>(parts()), 0);
  if (history_.scope == "grid") {
    auto* const of_grid = std::get_if<GridHistoryOn<Space>>(&cache_);
    auto& cache = of_grid != nullptr ? of_grid->part() : lane(0);
    auto& run = runs->emplace_back();
    run.cache = &cache;
    run.records = cache.records(space, next);
    const auto shard_of = [](const HistoryRecord& record) { return history_shard(record.vertex); };
    std::ranges::stable_sort(run.records, {}, shard_of);
    for (const auto& record : run.records) ++(*counts)[shard_of(record)];
  } else {
    for (auto& [lane, cache] : std::get<Lanes>(cache_)) {
      auto records = cache.records(space, next);
      (*counts)[lane] = std::ssize(records);
      if (!records.empty()) runs->push_back({{}, &cache, std::move(records)});
    }
  }
  const auto& world = grid_->host().world();
  world.all_reduce(std::span<std::int64_t>(*counts), Reduction::kSum, "checkpoint");
  std::vector<RowRange> mine;
  std::int64_t total = 0;
  auto run = runs->begin();
  for (std::int64_t part = 0; part < parts(); ++part) {
    const auto size = (*counts)[part];
    if (size > 0 && rank_of_part(part) == world.rank()) {
      if (run->rows.end == 0) run->rows.begin = total;
      run->rows.end = total + size;
      if (run->rows.size() == std::ssize(run->records)) mine.push_back((run++)->rows);
    }
    total += size;
  }

  const auto run_of = [runs](RowRange rows) -> const Run& {
    return *std::ranges::find_if(
        *runs, [&](const Run& some) { return some.rows.begin <= rows.begin && rows.end <= some.rows.end; });
  };
  const auto write_counts = [counts](RowRange rows, float* to) {
    for (auto k = rows.begin; k < rows.end; ++k) *as_words(to++) = static_cast<std::uint32_t>((*counts)[k]);
  };
  const auto write_records = [run_of, next](RowRange rows, float* to) {
    const auto& of = run_of(rows);
    for (auto k = rows.begin; k < rows.end; ++k, to += kRecordWords)
      put_record(of.records[k - of.rows.begin], next, as_words(to));
  };
  const auto write_rows = [run_of, space](RowRange rows, float* to) {
    const auto& of = run_of(rows);
    const auto records = std::span(of.records).subspan(static_cast<std::size_t>(rows.begin - of.rows.begin));
    of.cache->read_records(space, records.first(static_cast<std::size_t>(rows.size())), as_words(to));
  };
  const auto words = history_row_bytes(shape_.precision, shape_.width) / 4;
  const RowRange all_counts = {0, world.rank() == 0 ? parts() : 0};
  return {{tensor_name("counts"), parts(), 1, {all_counts}, write_counts, true},
          {tensor_name("records"), total, kRecordWords, mine, write_records, true},
          {tensor_name("rows"), total, words, mine, write_rows, true}};
}

// All that this rank keeps.
template <class Space>
std::vector<HistoryCacheOn<Space>*> TrainingHistoryOn<Space>::caches() {
  std::vector<HistoryCacheOn<Space>*> caches;
  if (auto* const of_grid = std::get_if<GridHistoryOn<Space>>(&cache_))
    caches.push_back(&of_grid->part());
  else
    for (auto& [number, cache] : std::get<Lanes>(cache_)) caches.push_back(&cache);
  return caches;
}

template <class Space>
std::vector<HeldRow> TrainingHistoryOn<Space>::held(const Space& space, std::int64_t next,
                                                    Matrix<float>* rows) {
  std::vector<HeldRow> held;
  std::vector<std::uint32_t> words;
  for (auto* const cache : caches()) {
    const auto records = cache->readable(space, next);
    for (const auto& record : records) held.push_back({record.layer, record.vertex, next - record.stamp});
    if (rows == nullptr) continue;
    const auto before = std::ssize(words);
    words.resize(static_cast<std::size_t>(before + std::ssize(records) * cache->row_words()));
    cache->read_records(space, records, words.data() + before);
  }
  if (rows != nullptr) {
    rows->resize(std::ssize(held), shape_.width);
    from_kept_words(shape_.precision, words.data(), *rows);
  }
  return held;
}

template <class Space>
bool TrainingHistoryOn<Space>::restore(const Space& space, std::int64_t next,
                                       std::span<const StateTensor> tensors) {
  const auto words = history_row_bytes(shape_.precision, shape_.width) / 4;
  const auto find = [&](const char* what, std::int64_t columns) -> const StateTensor* {
    const auto found = std::ranges::find(tensors, tensor_name(what), &StateTensor::name);
    return found != tensors.end() && found->columns == columns && found->words ? &*found : nullptr;
  };
  const auto* const counts = find("counts", 1);
  const auto* const records = find("records", kRecordWords);
  const auto* const rows = find("rows", words);
  if (counts == nullptr || records == nullptr || rows == nullptr || counts->rows != parts()) return false;
  auto sizes = counts->all();
  std::vector<HistoryRecord> taken;
  Buffer<float> kept, some;
  const auto take = [&](RowRange range) {
    some.resize(static_cast<std::size_t>(range.size() * kRecordWords));
    if (range.size() > 0) records->read(range, some.data());
    for (std::int64_t k = 0; k < range.size(); ++k)
      taken.push_back(take_record(as_words(some.data()) + k * kRecordWords, next));
    const auto before = std::ssize(kept);
    kept.resize(static_cast<std::size_t>(before + range.size() * words));
    if (range.size() > 0) rows->read(range, kept.data() + before);
  };
  for (std::int64_t part = 0, begin = 0; part < parts(); ++part) {
    const auto end = begin + as_words(sizes.data())[part];
    if (rank_of_part(part) == grid_->host().world().rank()) {
      take({begin, end});
      if (history_.scope == "lane") {
        lane(part).restore(space, next, taken, as_words(kept.data()));
        taken.clear();
        kept.clear();
      }
    }
    begin = end;
  }
  if (auto* const of_grid = std::get_if<GridHistoryOn<Space>>(&cache_))
    of_grid->restore(space, next, taken, as_words(kept.data()));
  else if (history_.scope == "grid")
    lane(0).restore(space, next, taken, as_words(kept.data()));
  return true;
}

}  // namespace espalier
