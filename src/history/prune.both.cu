// States of rows are found layer by layer from the seeds down; then, again from the seeds down,
// each list is made, the rows of its block are copied, and the list is dealt into rows that are
// computed and rows that are cached.
#include "espalier/history/prune.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "espalier/base/arrays.hpp"
#include "espalier/base/error.hpp"
#include "espalier/sample/type_runs.hpp"
#include "prune_kernels.hpp"

namespace espalier {

// ---- States -------------------------------------------------------------------------------------

template <class Space>
std::vector<Array<Space, RowState>> states_of(const Space& space, const MinibatchOn<Space>& minibatch,
                                              HistoryHits hits) {
  const auto layers = minibatch.blocks.size();
  ESPALIER_CHECK(layers > 0 && (hits.empty() || hits.size() == layers - 1),
                 "hits of {} layers for a minibatch of {}", hits.size(), layers);
  std::vector<Array<Space, RowState>> states(layers);
  for (auto l = layers; l-- > 0;) {
    const auto& block = minibatch.blocks[l];  // B[l+1]
    const auto of_layer = l == 0 || hits.empty() ? std::span<const std::uint8_t>() : hits[l - 1];
    ESPALIER_CHECK(of_layer.empty() || std::ssize(of_layer) == block.columns, "{} hits for {} rows of H[{}]",
                   of_layer.size(), block.columns, l);
    find_states(space, block, l + 1 == layers ? nullptr : states[l + 1].data(),
                of_layer.empty() ? nullptr : of_layer.data(), states[l]);
  }
  return states;
}

// ---- The compact form ---------------------------------------------------------------------------

template <class T>
std::span<const std::int64_t> span_of(const T& array) {
  return {array.data(), array.size()};
}

/// A pruned minibatch that is made from the seeds down, list by list: D[L-1] first. Who makes the
/// lists is the caller's affair; here it is decided what is computed and what is cached.
template <class Space>
class PrunedMaker {
 public:
  /// `seeds`: the runs of types of the seeds.
  PrunedMaker(std::int64_t number, std::size_t layers, const SharedList<std::int64_t, Space>& type_ends,
              std::span<const TypeRun> seeds)
      : type_ends_(type_ends),
        runs_of_rows_(seeds.begin(), seeds.end()),
        kept_(std::make_shared<std::vector<Layer>>(layers)) {
    pruned_.number = number;
    pruned_.layers.resize(layers);
    pruned_.blocks.resize(layers);
  }

  /// B'[l+1], and the list D[l] of its columns, whose first block.rows vertices are N[l+1];
  /// behind them they ascend. positions: in F[l]; null: their columns. hits [block.columns], or
  /// null: none.
  /// All of it is kept by `memory` but the hits, which are read here only. On a GPU the host waits.
  void add(const Space& space, std::size_t l, const BlockView<Space>& block, const std::int64_t* vertices,
           const std::int64_t* positions, const std::uint8_t* hits, std::shared_ptr<const void> memory) {
    auto& kept = (*kept_)[l];
    kept.memory = std::move(memory);
    const std::span<const std::int64_t> list(vertices, static_cast<std::size_t>(block.columns));
    kept.runs = runs_of_rows_;
    append_runs(space, list.subspan(static_cast<std::size_t>(block.rows)), block.rows, kept.runs);

    Array<Space, std::int64_t> before;
    std::int64_t cached = 0;
    if (hits != nullptr) {
      count_flags(space, hits, block.columns, before);
      cached = read_at(space, before.data(), std::span(&block.columns, 1))[0];
    }
    kept.place.resize(block.columns);
    for (auto& array : kept.computed) array.resize(block.columns - cached);
    for (auto& array : kept.cached) array.resize(cached);
    deal_rows(space, {vertices, positions, hits, before.data(), block.columns}, kept.lists());
    const auto rows_of = [](const Array<Space, std::int64_t>(&arrays)[3]) -> PrunedRows {
      return {span_of(arrays[0]), span_of(arrays[1]), span_of(arrays[2])};
    };
    pruned_.layers[l] = {span_of(kept.place), rows_of(kept.computed), rows_of(kept.cached), cached == 0};
    runs_of_rows_ = kept.runs;
    if (cached > 0) leave_computed(space, before, runs_of_rows_);

    auto& to = pruned_.blocks[l] = block;
    to.runs = kept.runs;
    pruned_.after.rows += block.rows;
    pruned_.after.entries += block.entries();
    if (l == 0) pruned_.after.inputs = block.columns;
  }

  /// N[l] of a list that was added.
  const PrunedRows& computed(std::size_t l) const { return pruned_.layers[l].computed; }

  PrunedMinibatchOn<Space> take() {
    pruned_.memory = std::move(kept_);
    return std::move(pruned_);
  }

 private:
  struct Layer {
    Array<Space, std::int64_t> place, computed[3], cached[3];
    std::vector<TypeRun> runs;  // of D[l]
    std::shared_ptr<const void> memory;

    LayerLists lists() {
      return {place.data(),
              {computed[0].data(), computed[1].data(), computed[2].data()},
              {cached[0].data(), cached[1].data(), cached[2].data()}};
    }
  };

  // Of ascending vertices that begin at `begin`.
  void append_runs(const Space& space, std::span<const std::int64_t> vertices, std::int64_t begin,
                   std::vector<TypeRun>& runs) const {
    if (type_ends_.size() == 0) return;
    const auto below = count_below(space, std::span(&vertices, 1), type_ends_);
    std::int64_t done = 0;
    for (std::size_t type = 0; type < below.size(); ++type) {
      if (below[type] > done) runs.push_back({begin + done, begin + below[type], static_cast<int>(type)});
      done = below[type];
    }
  }

  // Runs of D[l] become those of N[l].
  void leave_computed(const Space& space, const Array<Space, std::int64_t>& cached_before,
                      std::vector<TypeRun>& runs) const {
    if (runs.empty()) return;
    std::vector<std::int64_t> ends;
    for (const auto& run : runs) ends.push_back(run.end);
    const auto cached = read_at(space, cached_before.data(), ends);
    std::vector<TypeRun> left;
    std::int64_t done = 0;
    for (std::size_t k = 0; k < runs.size(); ++k) {
      const auto end = runs[k].end - cached[k];
      if (end > done) left.push_back({done, end, runs[k].type});
      done = end;
    }
    runs = std::move(left);
  }

  SharedList<std::int64_t, Space> type_ends_;
  std::vector<TypeRun> runs_of_rows_;  // of N[l+1] of the list that comes next
  std::shared_ptr<std::vector<Layer>> kept_;
  PrunedMinibatchOn<Space> pruned_;
};

/// The runs of the first `rows` vertices, where a run ends there.
inline std::span<const TypeRun> first_runs(std::span<const TypeRun> runs, std::int64_t rows) {
  return runs.first(static_cast<std::size_t>(
      std::ranges::find_if(runs, [&](const TypeRun& run) { return run.end > rows; }) - runs.begin()));
}

template <class Space>
PrunedMinibatchOn<Space> prune(const Space& space, const MinibatchOn<Space>& minibatch, HistoryHits hits) {
  // What is kept of a layer.
  struct List {
    Array<Space, std::int64_t> positions, vertices, indptr;
    Array<Space, std::int32_t> indices;
    Array<Space, float> values;
    Array<Space, std::uint8_t> relations;
  };
  const auto states = states_of(space, minibatch, hits);
  const auto layers = minibatch.blocks.size();
  PrunedMaker<Space> maker(minibatch.number, layers, minibatch.type_ends,
                           first_runs(minibatch.blocks.back().runs, minibatch.seeds()));
  Array<Space, std::int64_t> others;
  Array<Space, std::int32_t> column_of;
  Array<Space, std::uint8_t> flags;
  PrunedSize before = {.inputs = std::ssize(minibatch.vertices)};
  for (auto l = layers; l-- > 0;) {
    const auto& block = minibatch.blocks[l];  // B[l+1]
    const bool of_seeds = l + 1 == layers;
    const auto rows = of_seeds ? block.rows : maker.computed(l + 1).size();
    const auto* const row_positions = of_seeds ? nullptr : maker.computed(l + 1).positions.data();
    list_others(space, states[l], of_seeds ? nullptr : states[l + 1].data(), block.rows, minibatch.vertices,
                others);
    const auto columns = rows + std::ssize(others);
    const auto list = std::make_shared<List>();
    list->positions.resize(columns);
    list->vertices.resize(columns);
    column_of.resize(block.columns);
    const auto of_layer = l == 0 || hits.empty() ? std::span<const std::uint8_t>() : hits[l - 1];
    flags.resize(of_layer.empty() ? 0 : columns);
    write_list(space, row_positions, others, {minibatch.vertices.data(), of_layer.data()},
               {rows, list->positions.data(), list->vertices.data(),
                of_layer.empty() ? nullptr : flags.data(), column_of.data()});

    number_entries(space, block, row_positions, rows, list->indptr);
    const auto entries = read_at(space, list->indptr.data(), std::span(&rows, 1))[0];
    list->indices.resize(entries);
    list->values.resize(block.has_values() ? entries : 0);
    list->relations.resize(block.has_relations() ? entries : 0);
    copy_rows(
        space, block, row_positions, rows, list->indptr.data(), entries, column_of.data(),
        {list->indices.data(), {block.has_values(), list->values}, {block.has_relations(), list->relations}});
    maker.add(space, l,
              {rows,
               columns,
               entries,
               list->indptr.data(),
               list->indices.data(),
               {block.has_values(), list->values},
               {block.has_relations(), list->relations}},
              list->vertices.data(), list->positions.data(), of_layer.empty() ? nullptr : flags.data(), list);
    before.rows += block.rows;
    before.entries += block.entries();
  }
  auto pruned = maker.take();
  pruned.before = before;
  return pruned;
}

// ---- Samples of which only what is needed is drawn ----------------------------------------------

// The runs of types of vertices in any order.
inline std::vector<TypeRun> runs_of(std::span<const std::int64_t> vertices,
                                    std::span<const std::int64_t> type_ends) {
  std::vector<TypeRun> runs;
  if (type_ends.empty()) return runs;
  for (const auto v : vertices) {
    const auto type = static_cast<int>(std::ranges::upper_bound(type_ends, v) - type_ends.begin());
    const auto at = runs.empty() ? 0 : runs.back().end;
    if (runs.empty() || runs.back().type != type) runs.push_back({at, at, type});
    ++runs.back().end;
  }
  return runs;
}

template <class Space>
NeededSampleOn<Space> sample_needed(const Space& space, SamplerOn<Space>& sampler, std::size_t layers,
                                    std::span<const SeedBatch> batches, std::uint64_t seed,
                                    std::uint64_t epoch, const FindHits<Space>& find_hits) {
  NeededSampleOn<Space> result;
  std::vector<PrunedMaker<Space>> makers;
  std::vector<SeedBatch> rows(batches.begin(), batches.end());
  std::vector<Buffer<std::int64_t>> on_host(batches.size());
  for (std::size_t k = 0; k < layers; ++k) {
    const auto l = layers - 1 - k;
    auto drawn = sampler.sample_layer(space, rows, seed, epoch, k);
    result.digest += sample_digests(space, drawn, static_cast<std::int64_t>(l) + 1);
    if (k == 0)
      for (std::size_t m = 0; m < batches.size(); ++m)
        makers.emplace_back(batches[m].number, layers, drawn[m].type_ends,
                            runs_of(batches[m].seeds(), drawn[m].type_ends.host()));
    std::vector<std::span<const std::int64_t>> lists;
    for (const auto& minibatch : drawn) lists.push_back(minibatch.vertices);
    const auto hits = l == 0 ? std::vector<std::span<const std::uint8_t>>(lists.size())
                             : find_hits(static_cast<int>(l), lists);
    for (std::size_t m = 0; m < drawn.size(); ++m) {
      makers[m].add(space, l, drawn[m].blocks[0], lists[m].data(), nullptr,
                    hits[m].empty() ? nullptr : hits[m].data(), drawn[m].memory);
      if (l == 0) continue;
      const auto& next = makers[m].computed(l).vertices;
      on_host[m].resize(next.size());
      copy_from(space, next.data(), std::ssize(next), on_host[m].data());
      rows[m] = {batches[m].number, on_host[m]};
    }
  }
  for (auto& maker : makers) result.minibatches.push_back(maker.take());
  return result;
}

template PrunedMinibatchOn<Space> prune(const Space&, const MinibatchOn<Space>&, HistoryHits);
template NeededSampleOn<Space> sample_needed(const Space&, SamplerOn<Space>&, std::size_t,
                                             std::span<const SeedBatch>, std::uint64_t, std::uint64_t,
                                             const FindHits<Space>&);

}  // namespace espalier
