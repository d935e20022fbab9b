// Pruning, for every space: prune.cpp and prune.cu instantiate it. States of rows are found layer
// by layer from the seeds down; then every list is numbered by sums over its positions, the host
// reads the sizes, and lists and blocks are written.
#pragma once

#include <algorithm>
#include <utility>

#include "espalier/base/arrays.hpp"
#include "espalier/base/error.hpp"
#include "prune_rules.hpp"

namespace espalier {

// ---- The leaves of this room --------------------------------------------------------------------

// states [block.columns] = those of the rows of H[l] that the rows of B[l+1] with state kComputed
// (above; null: all) need. hits: null, or [block.columns].
void find_states(const Cpu&, const BlockView<Cpu>& block, const RowState* above, const std::uint8_t* hits,
                 Buffer<RowState>& states);
void find_states(const Cuda&, const BlockView<Cuda>& block, const RowState* above, const std::uint8_t* hits,
                 DeviceArray<RowState>& states);

// Sums over positions, each [states + 1], resized: how many computed and cached rows, and how many
// needed ones that are not `above`, stand before each.
void number_rows(const Cpu&, const Buffer<RowState>& states, const ComputedRows& above,
                 Buffer<std::int32_t>& computed, Buffer<std::int32_t>& cached, Buffer<std::int32_t>& others);
void number_rows(const Cuda&, const DeviceArray<RowState>& states, const ComputedRows& above,
                 DeviceArray<std::int32_t>& computed, DeviceArray<std::int32_t>& cached,
                 DeviceArray<std::int32_t>& others);

// before [block.rows + 1], resized: the entries of the computed rows before each row.
void number_entries(const Cpu&, const BlockView<Cpu>& block, const ComputedRows& rows,
                    Buffer<std::int64_t>& before);
void number_entries(const Cuda&, const BlockView<Cuda>& block, const ComputedRows& rows,
                    DeviceArray<std::int64_t>& before);

// The numbers, on the host, which waits.
std::vector<std::int64_t> read_numbers(const Cpu&, std::span<const NumberAt> numbers);
std::vector<std::int64_t> read_numbers(const Cuda&, std::span<const NumberAt> numbers);

// The lists of a layer. computed, cached: of number_rows; computed null: by column (l = 0).
void write_lists(const Cpu&, const Buffer<RowState>& states, std::span<const std::int64_t> vertices,
                 const std::int32_t* computed, const std::int32_t* cached, const ColumnNumbers& column,
                 const LayerLists& to);
void write_lists(const Cuda&, const DeviceArray<RowState>& states, std::span<const std::int64_t> vertices,
                 const std::int32_t* computed, const std::int32_t* cached, const ColumnNumbers& column,
                 const LayerLists& to);

// The computed rows of a block; entries: of number_entries.
void write_block(const Cpu&, const BlockView<Cpu>& from, const ComputedRows& rows,
                 const Buffer<std::int64_t>& entries, const ColumnNumbers& column, const BlockArrays& to);
void write_block(const Cuda&, const BlockView<Cuda>& from, const ComputedRows& rows,
                 const DeviceArray<std::int64_t>& entries, const ColumnNumbers& column,
                 const BlockArrays& to);

// end [rows], resized: start[i + 1] where states[i] is kComputed (null: all are), else start[i].
void end_rows(const Cpu&, std::int64_t rows, const std::int64_t* start, const RowState* states,
              Buffer<std::int64_t>& end);
void end_rows(const Cuda&, std::int64_t rows, const std::int64_t* start, const RowState* states,
              DeviceArray<std::int64_t>& end);

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

template <class Space>
Csr2MinibatchOn<Space> prune_in_place(const Space& space, const MinibatchOn<Space>& minibatch,
                                      HistoryHits hits) {
  struct Kept {
    std::vector<Array<Space, RowState>> states;
    std::vector<Array<Space, std::int64_t>> ends;
    std::shared_ptr<const void> minibatch;
  };
  auto kept = std::make_shared<Kept>();
  kept->states = states_of(space, minibatch, hits);
  kept->minibatch = minibatch.memory;
  const auto layers = minibatch.blocks.size();
  kept->ends.resize(layers);
  Csr2MinibatchOn<Space> pruned;
  for (std::size_t l = 0; l < layers; ++l) {
    const auto& block = minibatch.blocks[l];
    const auto* const states = l + 1 == layers ? nullptr : kept->states[l + 1].data();
    end_rows(space, block.rows, block.indptr, states, kept->ends[l]);
    pruned.blocks.push_back({block.rows, block.columns, block.indptr, kept->ends[l].data(), block.indices,
                             block.values, block.relations, block.runs});
    pruned.states.emplace_back(kept->states[l].data(), kept->states[l].size());
  }
  pruned.memory = std::move(kept);
  return pruned;
}

// ---- The compact form ---------------------------------------------------------------------------

/// Sums over the positions of one list F[l].
template <class Space>
struct ListSums {
  Array<Space, std::int32_t> computed, cached, others;  ///< [|F[l]| + 1]
  Array<Space, std::int64_t> entries;                   ///< [|F[l]| + 1] of B[l], for l > 0
};

/// Numbers that the host asks for, in the order in which it takes them up again.
struct AskedNumbers {
  std::vector<NumberAt> asked;
  std::vector<std::int64_t> answers;
  std::size_t next = 0;

  void ask(const std::int32_t* from, std::int64_t place) { asked.push_back({from, nullptr, place}); }
  void ask(const std::int64_t* from, std::int64_t place) { asked.push_back({nullptr, from, place}); }
  std::int64_t take() { return answers[next++]; }
};

/// What the host must know of one list.
struct ListSizes {
  std::int64_t computed = 0, cached = 0, others = 0, entries = 0;
  std::int64_t others_within = 0;  ///< of them, before |F[l+1]|: D[l] is then not in the order
                                   ///< of F[l]
  std::vector<TypeRun> runs;       ///< of D[l]
};

// A run of F[l] is one among the first columns, those of N[l+1], and one among the others.
template <class Space>
void ask_for_sizes(const BlockView<Space>& block, const ListSums<Space>& sums, const ComputedRows& above,
                   AskedNumbers& numbers) {
  numbers.ask(sums.computed.data(), block.columns);
  numbers.ask(sums.cached.data(), block.columns);
  numbers.ask(sums.others.data(), block.columns);
  numbers.ask(sums.others.data(), block.rows);
  if (!sums.entries.empty()) numbers.ask(sums.entries.data(), block.columns);
  const auto ask_at = [&](std::int64_t bound) {
    if (above.before != nullptr) numbers.ask(above.before, std::min(bound, block.rows));
    numbers.ask(sums.others.data(), bound);
  };
  for (const auto& run : block.runs) {
    ask_at(run.begin);
    ask_at(run.end);
  }
}

template <class Space>
ListSizes take_sizes(const BlockView<Space>& block, const ListSums<Space>& sums, const ComputedRows& above,
                     std::int64_t first_other, AskedNumbers& numbers) {
  ListSizes sizes;
  sizes.computed = numbers.take();
  sizes.cached = numbers.take();
  sizes.others = numbers.take();
  sizes.others_within = numbers.take();
  if (!sums.entries.empty()) sizes.entries = numbers.take();
  std::vector<TypeRun> of_others;
  for (const auto& run : block.runs) {
    const auto of_rows = [&](std::int64_t bound) {
      return above.before == nullptr ? std::min(bound, block.rows) : numbers.take();
    };
    TypeRun rows = run, others = run;
    rows.begin = of_rows(run.begin);
    others.begin = first_other + numbers.take();
    rows.end = of_rows(run.end);
    others.end = first_other + numbers.take();
    if (rows.begin < rows.end) sizes.runs.push_back(rows);
    if (others.begin < others.end) of_others.push_back(others);
  }
  sizes.runs.insert(sizes.runs.end(), of_others.begin(), of_others.end());
  return sizes;
}

/// The arrays of a pruned minibatch.
template <class Space>
struct PrunedArrays {
  struct Layer {
    Array<Space, std::int64_t> place, computed[3], cached[3];
    std::vector<TypeRun> runs;

    LayerLists lists() {
      return {place.data(),
              {computed[0].data(), computed[1].data(), computed[2].data()},
              {cached[0].data(), cached[1].data(), cached[2].data()}};
    }
  };
  struct OfBlock {
    Array<Space, std::int64_t> indptr;
    Array<Space, std::int32_t> indices;
    Array<Space, float> values;
    Array<Space, std::uint8_t> relations;
  };
  std::vector<Layer> layers;
  std::vector<OfBlock> blocks;
};

template <class T>
std::span<const std::int64_t> span_of(const T& array) {
  return {array.data(), array.size()};
}

template <class Space>
PrunedMinibatchOn<Space> prune(const Space& space, const MinibatchOn<Space>& minibatch, HistoryHits hits) {
  const auto states = states_of(space, minibatch, hits);
  const auto layers = minibatch.blocks.size();
  const auto above = [&](const auto& sums, std::size_t l) -> ComputedRows {
    return {l + 1 == layers ? nullptr : sums[l + 1].computed.data(), minibatch.blocks[l].rows};
  };

  // 1. Number every list, seeds first.
  std::vector<ListSums<Space>> sums(layers);
  Array<Space, std::int64_t> entries_of_seeds;
  AskedNumbers numbers;
  for (auto l = layers; l-- > 0;) {
    number_rows(space, states[l], above(sums, l), sums[l].computed, sums[l].cached, sums[l].others);
    if (l > 0)
      number_entries(space, minibatch.blocks[l - 1], {sums[l].computed.data(), minibatch.blocks[l - 1].rows},
                     sums[l].entries);
    ask_for_sizes(minibatch.blocks[l], sums[l], above(sums, l), numbers);
  }
  number_entries(space, minibatch.blocks.back(), {nullptr, minibatch.seeds()}, entries_of_seeds);

  // 2. Learn the sizes: the one time that the host waits.
  numbers.answers = read_numbers(space, numbers.asked);
  std::vector<ListSizes> sizes(layers + 1);  // the last: of the seeds
  sizes[layers].computed = minibatch.seeds();
  sizes[layers].entries = minibatch.blocks.back().entries();
  for (auto l = layers; l-- > 0;)
    sizes[l] = take_sizes(minibatch.blocks[l], sums[l], above(sums, l), sizes[l + 1].computed, numbers);

  // 3. Write lists and blocks.
  auto kept = std::make_shared<PrunedArrays<Space>>();
  kept->layers.resize(layers);
  kept->blocks.resize(layers);
  PrunedMinibatchOn<Space> pruned;
  pruned.number = minibatch.number;
  pruned.before.inputs = std::ssize(minibatch.vertices);
  pruned.after.inputs = sizes[0].computed;
  for (std::size_t l = 0; l < layers; ++l) {
    auto& lists = kept->layers[l];
    const auto needed = sizes[l].computed + sizes[l].cached;
    lists.place.resize(needed);
    for (auto& list : lists.computed) list.resize(sizes[l].computed);
    for (auto& list : lists.cached) list.resize(sizes[l].cached);
    lists.runs = std::move(sizes[l].runs);
    const ColumnNumbers column = {above(sums, l), sizes[l + 1].computed, sums[l].others.data()};
    write_lists(space, states[l], minibatch.vertices, l == 0 ? nullptr : sums[l].computed.data(),
                sums[l].cached.data(), column, lists.lists());
    const auto rows_of = [](const Array<Space, std::int64_t>(&list)[3]) -> PrunedRows {
      return {span_of(list[0]), span_of(list[1]), span_of(list[2])};
    };
    pruned.layers.push_back({span_of(lists.place), rows_of(lists.computed), rows_of(lists.cached),
                             l == 0 || (sizes[l].cached == 0 && sizes[l].others_within == 0)});

    const auto& from = minibatch.blocks[l];  // B[l+1]
    auto& to = kept->blocks[l];
    const auto entries = sizes[l + 1].entries;
    to.indptr.resize(sizes[l + 1].computed + 1);
    to.indices.resize(entries);
    // Some memory in any case: null would say that there are none.
    to.values.reserve(from.has_values() ? entries + 1 : 0);
    to.relations.reserve(from.relations != nullptr ? entries + 1 : 0);
    to.values.resize(from.has_values() ? entries : 0);
    to.relations.resize(from.relations != nullptr ? entries : 0);
    write_block(space, from, above(sums, l), l + 1 == layers ? entries_of_seeds : sums[l + 1].entries, column,
                {to.indptr.data(), to.indices.data(), from.has_values() ? to.values.data() : nullptr,
                 from.relations == nullptr ? nullptr : to.relations.data()});
    pruned.blocks.emplace_back(sizes[l + 1].computed, needed, entries, to.indptr.data(), to.indices.data(),
                               from.has_values() ? to.values.data() : nullptr,
                               from.relations == nullptr ? nullptr : to.relations.data());
    pruned.blocks.back().runs = lists.runs;
    pruned.before.rows += from.rows;
    pruned.before.entries += from.entries();
    pruned.after.rows += sizes[l + 1].computed;
    pruned.after.entries += entries;
  }
  pruned.memory = std::move(kept);
  return pruned;
}

}  // namespace espalier
