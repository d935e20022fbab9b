// A cache of history, for every space: history_cache.cpp and history_cache.cu instantiate it. What
// is held, and in which slot, the index says; rows of a step wait in the pieces in which they came.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "espalier/base/arrays.hpp"
#include "espalier/base/error.hpp"
#include "history_index.hpp"

namespace espalier {

// ---- The kernels of this room -------------------------------------------------------------------

// to [count, words] = rows[which[k]] of float32 as they are kept. which: memory of the space.
void keep_rows(const Cpu&, HistoryPrecision precision, ConstMatrixView<float> rows, const std::int64_t* which,
               std::int64_t count, std::int64_t words, std::uint32_t* to);
void keep_rows(const Cuda&, HistoryPrecision precision, ConstMatrixView<float, Cuda> rows,
               const std::int64_t* which, std::int64_t count, std::int64_t words, std::uint32_t* to);

// to(k, :) = row slots[positions[k]] of `kept` in float32; positions null: slots[k].
void read_rows(const Cpu&, HistoryPrecision precision, const std::uint32_t* kept, std::int64_t words,
               const std::int32_t* slots, const std::int64_t* positions, MatrixView<float> to);
void read_rows(const Cuda&, HistoryPrecision precision, const std::uint32_t* kept, std::int64_t words,
               const std::int32_t* slots, const std::int64_t* positions, MatrixView<float, Cuda> to);

// to[targets[k]] = from[sources[k]], rows of so many words; null: k. The lists: memory of
// the space.
void move_rows(const Cpu&, const std::uint32_t* from, const std::int64_t* sources, std::int64_t count,
               std::int64_t words, const std::int64_t* targets, std::uint32_t* to);
void move_rows(const Cuda&, const std::uint32_t* from, const std::int64_t* sources, std::int64_t count,
               std::int64_t words, const std::int64_t* targets, std::uint32_t* to);

// -------------------------------------------------------------------------------------------------

/// What the batches of a step have written, in the pieces in which it came.
template <class Space>
struct HistoryStepOn {
  std::vector<IndexedWrite> writes;                 // source: piece << 32 | row
  std::vector<Array<Space, std::uint32_t>> pieces;  // of rows as they are kept
  std::vector<std::int64_t> evictions;              // keys
  bool ended = false;

  // A new piece; its writes have sources from this one on.
  std::int64_t add_piece(Array<Space, std::uint32_t> rows) {
    pieces.push_back(std::move(rows));
    return (std::ssize(pieces) - 1) << 32;
  }

  void write(const Space& space, const HistoryShape& shape, std::int64_t batch, int layer,
             std::span<const HistoryWrite> rows_of, ConstMatrixView<float, Space> rows) {
    ESPALIER_CHECK(rows.columns == shape.width, "rows of {} for a cache of {}", rows.columns, shape.width);
    if (rows_of.empty()) return;
    const auto words = history_row_bytes(shape.precision, shape.width) / 4;
    const auto piece =
        add_piece(Array<Space, std::uint32_t>(rows_of.size() * static_cast<std::size_t>(words)));
    std::vector<std::int64_t> which;
    for (const auto& write : rows_of) {
      writes.push_back({history_key(layer, write.vertex), batch, write.score, piece | std::ssize(which)});
      which.push_back(write.row);
    }
    const auto from = copy_to(space, std::span<const std::int64_t>(which));
    keep_rows(space, shape.precision, rows, from.data(), std::ssize(which), words, pieces.back().data());
  }

  void evict(int layer, std::span<const std::int64_t> vertices) {
    for (const auto v : vertices) evictions.push_back(history_key(layer, v));
  }

  // Of each key the write of the lowest batch, by key.
  std::vector<IndexedWrite> lowest_writes() const {
    auto lowest = writes;
    keep_lowest(lowest);
    return lowest;
  }

  // to[placed[k].slot] = the row of placed[k].source.
  void place(const Space& space, std::vector<PlacedRow> placed, std::int64_t words, std::uint32_t* to) const {
    if (!std::ranges::is_sorted(placed, {}, &PlacedRow::source))
      std::ranges::sort(placed, {}, &PlacedRow::source);
    auto next = placed.begin();
    for (std::int64_t piece = 0; piece < std::ssize(pieces); ++piece) {
      std::vector<std::int64_t> sources, targets;
      for (; next != placed.end() && next->source >> 32 == piece; ++next) {
        sources.push_back(next->source & 0xffffffff);
        targets.push_back(next->slot);
      }
      const auto from = copy_to(space, std::span<const std::int64_t>(sources)),
                 of_rows = copy_to(space, std::span<const std::int64_t>(targets));
      move_rows(space, pieces[piece].data(), from.data(), std::ssize(sources), words, of_rows.data(), to);
    }
  }
};

/// Steps under way, or that wait.
template <class Space>
struct HistoryStepsOn {
  std::map<std::int64_t, HistoryStepOn<Space>> all;

  HistoryStepOn<Space>& begun(std::int64_t step) {
    const auto found = all.find(step);
    ESPALIER_CHECK(found != all.end() && !found->second.ended, "step {} is not under way", step);
    return found->second;
  }
};

/// What is held, and what waits.
template <class Space>
struct HistoryCacheOn<Space>::Kept {
  HistoryIndex index;
  Array<Space, std::uint32_t> rows;  // [slots, words]
  std::int64_t slots = 0;
  HistoryStepsOn<Space> steps;  // that have not committed

  explicit Kept(const HistoryShape& shape) : index(shape.entries) {}

  // Memory for slots; rows stay.
  void make_place(const Space& space, std::int64_t wanted, std::int64_t words) {
    if (wanted <= slots) return;
    const auto grown = std::max(wanted, slots + slots / 2);
    Array<Space, std::uint32_t> larger(static_cast<std::size_t>(grown * words));
    if (slots > 0) copy_within(space, rows.data(), slots * words, larger.data());
    rows = std::move(larger);
    slots = grown;
  }
};

/// The vertices of the longest list F[l] of a hidden layer, on the host, which waits: the others
/// are prefixes.
template <class Space>
Buffer<std::int64_t> read_longest_list(const Space& space, const HistoryShape& shape,
                                       const MinibatchOn<Space>& minibatch) {
  ESPALIER_CHECK(shape.layers < static_cast<int>(minibatch.blocks.size()),
                 "history of {} hidden layers of {}", shape.layers, minibatch.blocks.size());
  std::int64_t size = 0;
  for (int layer = 1; layer <= shape.layers; ++layer) size = std::max(size, minibatch.blocks[layer - 1].rows);
  Buffer<std::int64_t> vertices(static_cast<std::size_t>(size));
  copy_from(space, minibatch.vertices.data(), size, vertices.data());
  return vertices;
}

/// Flags and slots of a minibatch's lists in a step; slot(l, i) of position i, whose vertex is
/// vertices[i], in layer l.
template <class Space, class SlotOf>
HistoryFoundOn<Space> flags_of(const Space& space, const HistoryShape& shape, std::int64_t step,
                               const MinibatchOn<Space>& minibatch, std::span<const std::int64_t> vertices,
                               const SlotOf& slot) {
  HistoryFoundOn<Space> found(minibatch.blocks.size() - 1);
  std::vector<std::uint8_t> hits, recomputed;
  std::vector<std::int32_t> slots;
  for (int layer = 1; layer <= shape.layers; ++layer) {
    const auto size = minibatch.blocks[layer - 1].rows;
    hits.assign(static_cast<std::size_t>(size), 0);
    recomputed.assign(shape.recompute > 0 ? static_cast<std::size_t>(size) : 0, 0);
    slots.assign(static_cast<std::size_t>(size), -1);
    for (std::int64_t i = 0; i < size; ++i) {
      slots[i] = static_cast<std::int32_t>(slot(layer, i));
      hits[i] = slots[i] >= 0;
      if (hits[i] != 0 && computes_anyway(shape, step, minibatch.number, layer, vertices[i])) {
        recomputed[i] = 1;
        hits[i] = 0;
      }
    }
    found.hits[layer - 1] = copy_to(space, std::span<const std::uint8_t>(hits));
    found.slots[layer - 1] = copy_to(space, std::span<const std::int32_t>(slots));
    found.recomputed[layer - 1] = copy_to(space, std::span<const std::uint8_t>(recomputed));
  }
  return found;
}

template <class Space>
HistoryCacheOn<Space>::HistoryCacheOn(const HistoryShape& shape)
    : shape_(shape), kept_(std::make_unique<Kept>(shape)) {
  ESPALIER_CHECK(shape.layers > 0 && shape.t_stale >= 0 && shape.entries >= 0 && shape.width > 0,
                 "layers {}, t_stale {}, entries {}, width {}", shape.layers, shape.t_stale, shape.entries,
                 shape.width);
}
template <class Space>
HistoryCacheOn<Space>::~HistoryCacheOn() = default;
template <class Space>
HistoryCacheOn<Space>::HistoryCacheOn(HistoryCacheOn&&) noexcept = default;
template <class Space>
HistoryCacheOn<Space>& HistoryCacheOn<Space>::operator=(HistoryCacheOn&&) noexcept = default;

template <class Space>
std::int64_t HistoryCacheOn<Space>::size() const {
  return kept_->index.size();
}

template <class Space>
std::int64_t HistoryCacheOn<Space>::bytes() const {
  // Of an entry: itself, two places of the table at half its load, one of a queue.
  constexpr std::int64_t kIndexBytes = sizeof(HistoryIndex::Entry) + 2 * 8 + 16;
  auto sum = std::ssize(kept_->rows) * 4 + kept_->index.slots() * kIndexBytes;
  for (const auto& [number, step] : kept_->steps.all) {
    for (const auto& piece : step.pieces) sum += std::ssize(piece) * 4;
    sum += std::ssize(step.writes) * std::int64_t{sizeof(IndexedWrite)} + 8 * std::ssize(step.evictions);
  }
  return sum;
}

// ---- Steps --------------------------------------------------------------------------------------

template <class Space>
void HistoryCacheOn<Space>::begin(const Space& space, std::int64_t step) {
  ESPALIER_CHECK(step > step_, "step {} after step {}", step, step_);
  commit_for(space, step);
  kept_->steps.all[step];
  step_ = step;
}

// What step `next` sees, and a checkpoint before it.
template <class Space>
void HistoryCacheOn<Space>::commit_for(const Space& space, std::int64_t next) {
  std::vector<PlacedRow> placed;
  auto& steps = kept_->steps.all;
  while (!steps.empty() && steps.begin()->first < next - kHistoryLag) {
    const auto number = steps.begin()->first;
    auto& ended = steps.begin()->second;
    ESPALIER_CHECK(ended.ended, "step {} begins before the end of step {}", next, number);
    kept_->index.commit(number, ended.evictions, number - 1 - kHistoryLag, std::move(ended.writes),
                        number + 1 + kHistoryLag - shape_.t_stale, placed);
    kept_->make_place(space, kept_->index.slots(), row_words());
    ended.place(space, placed, row_words(), kept_->rows.data());
    steps.erase(steps.begin());
  }
}

template <class Space>
std::int64_t HistoryCacheOn<Space>::slot_of(int layer, std::int64_t vertex) const {
  const auto slot = kept_->index.find(history_key(layer, vertex));
  return slot >= 0 && age_of(slot) <= shape_.t_stale ? slot : -1;
}

template <class Space>
std::int64_t HistoryCacheOn<Space>::age_of(std::int64_t slot) const {
  return step_ - kept_->index.entry(slot).stamp;
}

template <class Space>
HistoryFoundOn<Space> HistoryCacheOn<Space>::find(const Space& space,
                                                  const MinibatchOn<Space>& minibatch) const {
  const auto vertices = read_longest_list(space, shape_, minibatch);
  return flags_of(space, shape_, step_, minibatch, vertices,
                  [&](int layer, std::int64_t i) { return slot_of(layer, vertices[i]); });
}

template <class Space>
void HistoryCacheOn<Space>::read(const Space& space, const HistoryFoundOn<Space>& found, int layer,
                                 std::span<const std::int64_t> positions, Matrix<float, Space>& rows) const {
  rows.resize(std::ssize(positions), shape_.width);
  read_rows(space, shape_.precision, kept_->rows.data(), row_words(), found.slots[layer - 1].data(),
            positions.data(), rows);
}

template <class Space>
void HistoryCacheOn<Space>::write(const Space& space, std::int64_t step, std::int64_t batch, int layer,
                                  std::span<const HistoryWrite> writes, ConstMatrixView<float, Space> rows) {
  kept_->steps.begun(step).write(space, shape_, batch, layer, writes, rows);
}

template <class Space>
void HistoryCacheOn<Space>::write_kept(std::int64_t step, std::span<const HistoryRecord> writes,
                                       Array<Space, std::uint32_t> words) {
  auto& to = kept_->steps.begun(step);
  if (writes.empty()) return;
  const auto piece = to.add_piece(std::move(words));
  for (std::size_t k = 0; k < writes.size(); ++k)
    to.writes.push_back({history_key(writes[k].layer, writes[k].vertex), writes[k].batch, writes[k].score,
                         piece | static_cast<std::int64_t>(k)});
}

template <class Space>
void HistoryCacheOn<Space>::evict(std::int64_t step, int layer, std::span<const std::int64_t> vertices) {
  kept_->steps.begun(step).evict(layer, vertices);
}

template <class Space>
void HistoryCacheOn<Space>::end(std::int64_t step) {
  kept_->steps.begun(step).ended = true;
}

template <class Space>
void HistoryCacheOn<Space>::copy_kept(const Space& space, std::span<const std::int64_t> slots,
                                      std::uint32_t* words) const {
  const auto from = copy_to(space, slots);
  move_rows(space, kept_->rows.data(), from.data(), std::ssize(slots), row_words(), nullptr, words);
}

}  // namespace espalier
