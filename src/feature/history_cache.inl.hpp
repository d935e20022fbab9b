// A cache of history, for every space: history_cache.cpp and history_cache.cu instantiate it. What
// is held, and in which slot, the index says; rows of a step wait in the pieces in which they came.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "espalier/base/arrays.hpp"
#include "espalier/base/error.hpp"
#include "espalier/feature/history_uses.hpp"
#include "history_index.hpp"
#include "history_rows.hpp"

namespace espalier {

// ---- The leaves of this room --------------------------------------------------------------------

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
  std::vector<HistoryIndex::Placed> gone;  // by its commit, that can be taken back

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

/// What is held, and what waits. A step that began ahead (overlap) has had steps commit that a
/// checkpoint in between, which is read without looking ahead, must not have seen: such steps, and
/// the rows that have gone with them, stay until they are needed no more.
template <class Space>
struct HistoryCacheOn<Space>::Kept {
  HistoryIndex index;
  Array<Space, std::uint32_t> rows;  // [slots, words]
  std::int64_t slots = 0;
  HistoryStepsOn<Space> steps;                             // that have not committed
  std::map<std::int64_t, HistoryStepOn<Space>> revocable;  // that have, too early for a checkpoint
  HistoryUsesOfEpochs uses;

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

/// The vertices of the longest list F[l] of a layer that is kept, on the host, which waits: the
/// others are prefixes.
template <class Space>
Buffer<std::int64_t> read_longest_list(const Space& space, const HistoryShape& shape,
                                       const MinibatchOn<Space>& minibatch) {
  ESPALIER_CHECK(shape.layers.front() >= 1 && shape.layers.back() < static_cast<int>(minibatch.blocks.size()),
                 "history of layers {} .. {} of {}", shape.layers.front(), shape.layers.back(),
                 minibatch.blocks.size());
  std::int64_t size = 0;
  for (const int layer : shape.layers) size = std::max(size, minibatch.blocks[layer - 1].rows);
  Buffer<std::int64_t> vertices(static_cast<std::size_t>(size));
  copy_from(space, minibatch.vertices.data(), size, vertices.data());
  return vertices;
}

/// What a minibatch looks for, of its longest list.
template <class Space>
std::vector<ExpectedVertex> expected_of(const Space& space, const HistoryShape& shape,
                                        const ExpectedMinibatchOn<Space>& expected) {
  std::vector<ExpectedVertex> vertices;
  if (shape.layers.empty()) return vertices;
  const auto& blocks = expected.minibatch->blocks;
  for (const auto v : read_longest_list(space, shape, *expected.minibatch)) {
    const auto i = std::ssize(vertices);
    auto& wanted = vertices.emplace_back(v, expected.step);
    for (std::size_t k = 0; k < shape.layers.size(); ++k)
      wanted.layers |= static_cast<std::uint64_t>(i < blocks[shape.layers[k] - 1].rows) << k;
  }
  return vertices;
}

/// Flags and slots of a minibatch's lists; slot(k, i) of position i in the k-th of shape.layers.
template <class Space, class SlotOf>
HistoryFoundOn<Space> flags_of(const Space& space, const HistoryShape& shape,
                               const MinibatchOn<Space>& minibatch, const SlotOf& slot) {
  HistoryFoundOn<Space> found;
  found.hits.resize(minibatch.blocks.size() - 1);
  found.slots.resize(minibatch.blocks.size() - 1);
  const auto first = shape.seeds_hit ? 0 : minibatch.seeds();
  std::vector<std::uint8_t> hits;
  std::vector<std::int32_t> slots;
  for (std::size_t k = 0; k < shape.layers.size(); ++k) {
    const int layer = shape.layers[k];
    const auto size = minibatch.blocks[layer - 1].rows;
    hits.assign(static_cast<std::size_t>(size), 0);
    slots.assign(static_cast<std::size_t>(size), -1);
    for (auto i = first; i < size; ++i) {
      slots[i] = static_cast<std::int32_t>(slot(k, i));
      hits[i] = slots[i] >= 0;
      found.hit_rows += hits[i];
    }
    found.hits[layer - 1] = copy_to(space, std::span<const std::uint8_t>(hits));
    found.slots[layer - 1] = copy_to(space, std::span<const std::int32_t>(slots));
  }
  return found;
}

template <class Space>
HistoryCacheOn<Space>::HistoryCacheOn(const HistoryShape& shape)
    : shape_(shape), kept_(std::make_unique<Kept>(shape)) {
  ESPALIER_CHECK(shape.lag >= 0 && shape.t_stale >= 0 && shape.entries >= 0 && shape.width > 0,
                 "lag {}, t_stale {}, entries {}, width {}", shape.lag, shape.t_stale, shape.entries,
                 shape.width);
  ESPALIER_CHECK(std::ranges::is_sorted(shape.layers), "layers of history in no order");
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
  for (const auto* const steps : {&kept_->steps.all, &kept_->revocable})
    for (const auto& [number, step] : *steps) {
      for (const auto& piece : step.pieces) sum += std::ssize(piece) * 4;
      sum += std::ssize(step.writes) * std::int64_t{sizeof(IndexedWrite)} + 8 * std::ssize(step.evictions) +
             std::ssize(step.gone) * std::int64_t{sizeof(HistoryIndex::Placed)};
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

// What step `next` sees.
template <class Space>
void HistoryCacheOn<Space>::commit_for(const Space& space, std::int64_t next) {
  std::vector<PlacedRow> placed;
  auto& steps = kept_->steps.all;
  while (!steps.empty() && steps.begin()->first < next - shape_.lag) {
    const auto number = steps.begin()->first;
    auto& ended = steps.begin()->second;
    ESPALIER_CHECK(ended.ended, "step {} begins before the end of step {}, lag {}", next, number, shape_.lag);
    const bool revocable = ended_ < number + shape_.lag;
    auto writes = revocable ? ended.writes : std::move(ended.writes);
    kept_->index.commit(number, ended.evictions, number - 1 - shape_.lag, std::move(writes),
                        number + 1 + shape_.lag - shape_.t_stale, placed, revocable ? &ended.gone : nullptr);
    kept_->make_place(space, kept_->index.slots(), row_words());
    ended.place(space, placed, row_words(), kept_->rows.data());
    if (revocable) kept_->revocable[number] = std::move(ended);
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
  const auto vertices =
      shape_.layers.empty() ? Buffer<std::int64_t>() : read_longest_list(space, shape_, minibatch);
  return flags_of(space, shape_, minibatch,
                  [&](std::size_t k, std::int64_t i) { return slot_of(shape_.layers[k], vertices[i]); });
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
  std::vector<HistoryWrite> awaited(writes.begin(), writes.end());
  std::erase_if(awaited, [&](const HistoryWrite& write) { return !awaits(step, layer, write.vertex); });
  kept_->steps.begun(step).write(space, shape_, batch, layer, awaited, rows);
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
  ended_ = std::max(ended_, step);
  kept_->uses.forget(step);
  auto& revocable = kept_->revocable;
  while (!revocable.empty() && revocable.begin()->first + shape_.lag <= ended_) {
    kept_->index.release(revocable.begin()->second.gone);
    revocable.erase(revocable.begin());
  }
}

template <class Space>
void HistoryCacheOn<Space>::expect(const Space& space,
                                   std::span<const ExpectedMinibatchOn<Space>> minibatches,
                                   std::int64_t end) {
  std::vector<ExpectedVertex> vertices;
  for (const auto& minibatch : minibatches)
    std::ranges::copy(expected_of(space, shape_, minibatch), std::back_inserter(vertices));
  expect_vertices(vertices, end);
}

template <class Space>
void HistoryCacheOn<Space>::expect_vertices(std::span<const ExpectedVertex> vertices, std::int64_t end) {
  auto& uses = kept_->uses.of_epoch_until(end);
  for (const auto& wanted : vertices)
    for (std::size_t k = 0; k < shape_.layers.size(); ++k)
      if ((wanted.layers >> k & 1) != 0) uses.add(shape_.layers[k], wanted.vertex, wanted.step);
}

template <class Space>
bool HistoryCacheOn<Space>::awaits(std::int64_t step, int layer, std::int64_t vertex) {
  return kept_->uses.awaited(step, layer, vertex, step + shape_.lag, step + shape_.t_stale);
}

template <class Space>
void HistoryCacheOn<Space>::copy_kept(const Space& space, std::span<const std::int64_t> slots,
                                      std::uint32_t* words) const {
  const auto from = copy_to(space, slots);
  move_rows(space, kept_->rows.data(), from.data(), std::ssize(slots), row_words(), nullptr, words);
}

// ---- State --------------------------------------------------------------------------------------

// What step `next` finds.
template <class Space>
std::vector<HistoryRecord> HistoryCacheOn<Space>::held(const Space& space, std::int64_t next) {
  commit_for(space, next);
  auto held = kept_->index.held();
  const auto first = next - shape_.lag;  // of those that step `next` must not see
  for (auto at = kept_->revocable.rbegin(); at != kept_->revocable.rend() && at->first >= first; ++at) {
    std::erase_if(held, [&](const auto& row) { return row.entry.stamp == at->first; });
    std::ranges::copy(at->second.gone, std::back_inserter(held));
  }
  std::vector<HistoryRecord> records;
  for (const auto& [entry, slot] : held)
    records.push_back({HistoryRecord::Kind::kHeld, layer_of(entry.key), vertex_of(entry.key), entry.stamp, 0,
                       entry.score, slot});
  return records;
}

template <class Space>
std::vector<HistoryRecord> HistoryCacheOn<Space>::readable(const Space& space, std::int64_t next) {
  auto records = held(space, next);
  std::erase_if(records, [&](const HistoryRecord& record) { return next - record.stamp > shape_.t_stale; });
  return records;
}

template <class Space>
std::vector<HistoryRecord> HistoryCacheOn<Space>::records(const Space& space, std::int64_t next) {
  using Kind = HistoryRecord::Kind;
  auto records = held(space, next);
  const auto add_steps = [&](const std::map<std::int64_t, HistoryStepOn<Space>>& steps, std::int64_t first) {
    for (auto at = steps.lower_bound(first); at != steps.end() && at->first < next; ++at) {
      const auto& [number, step] = *at;
      ESPALIER_CHECK(step.ended, "what step {} finds of history, in the middle of step {}", next, number);
      for (const auto& write : step.lowest_writes())
        records.push_back({Kind::kWritten, layer_of(write.key), vertex_of(write.key), number, write.batch,
                           write.score, write.source});
      std::vector<std::int64_t> evictions = step.evictions;
      std::ranges::sort(evictions);
      const auto repeated = std::ranges::unique(evictions);
      evictions.erase(repeated.begin(), repeated.end());
      for (const auto key : evictions)
        records.push_back({Kind::kDropped, layer_of(key), vertex_of(key), number});
    }
  };
  add_steps(kept_->revocable, next - shape_.lag);
  add_steps(kept_->steps.all, 0);
  std::ranges::sort(records, {}, &HistoryRecord::order);
  return records;
}

template <class Space>
void HistoryCacheOn<Space>::read_records(const Space& space, std::span<const HistoryRecord> records,
                                         std::uint32_t* words) const {
  const auto size = row_words();
  std::fill_n(words, std::ssize(records) * size, 0u);
  // Of what is held, and of each step: where its rows lie, and which records they are of.
  std::map<std::int64_t, std::vector<std::int64_t>> places, targets;
  for (std::size_t k = 0; k < records.size(); ++k) {
    const auto& record = records[k];
    if (record.kind == HistoryRecord::Kind::kDropped) continue;
    const auto from = record.kind == HistoryRecord::Kind::kHeld ? -1 : record.stamp;
    places[from].push_back(record.place);
    targets[from].push_back(static_cast<std::int64_t>(k));
  }
  for (const auto& [from, of_rows] : places) {
    Array<Space, std::uint32_t> gathered(of_rows.size() * static_cast<std::size_t>(size));
    if (from < 0) {
      copy_kept(space, of_rows, gathered.data());
    } else {
      std::vector<PlacedRow> placed;
      for (const auto source : of_rows) placed.push_back({source, std::ssize(placed)});
      const auto waits = kept_->steps.all.find(from);
      const auto& step = waits != kept_->steps.all.end() ? waits->second : kept_->revocable.at(from);
      step.place(space, std::move(placed), size, gathered.data());
    }
    const auto on_host = copy_from(space, gathered);
    const auto& to = targets[from];
    for (std::size_t k = 0; k < to.size(); ++k)
      std::copy_n(on_host.data() + static_cast<std::int64_t>(k) * size, size, words + to[k] * size);
  }
}

template <class Space>
void HistoryCacheOn<Space>::restore(const Space& space, std::int64_t next,
                                    std::span<const HistoryRecord> records, const std::uint32_t* words) {
  const auto size = row_words();
  kept_ = std::make_unique<Kept>(shape_);
  step_ = ended_ = next - 1;
  std::vector<HistoryIndex::Entry> entries;
  Buffer<std::uint32_t> held;
  std::map<std::int64_t, std::pair<std::vector<HistoryRecord>, Buffer<std::uint32_t>>> written;
  auto& steps = kept_->steps.all;
  for (std::size_t k = 0; k < records.size(); ++k) {
    const auto& record = records[k];
    const auto* const row = words + static_cast<std::int64_t>(k) * size;
    const auto key = history_key(record.layer, record.vertex);
    if (record.kind == HistoryRecord::Kind::kHeld) {
      entries.push_back({key, record.stamp, record.score});
      held.insert(held.end(), row, row + size);
      continue;
    }
    auto& step = steps[record.stamp];
    if (record.kind == HistoryRecord::Kind::kDropped) {
      step.evictions.push_back(key);
    } else {
      auto& [of_step, rows] = written[record.stamp];
      of_step.push_back(record);
      rows.insert(rows.end(), row, row + size);
    }
  }
  for (const auto& [number, of_step] : written) {
    write_kept(number, of_step.first, copy_to(space, std::span<const std::uint32_t>(of_step.second)));
  }
  for (auto& [number, step] : steps) step.ended = true;
  const auto count = std::ssize(entries);
  kept_->index.restore(std::move(entries));
  kept_->make_place(space, count, size);
  if (count > 0) copy_to(space, held.data(), std::ssize(held), kept_->rows.data());
}

}  // namespace espalier
