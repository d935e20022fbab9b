// What the steps of a cache of history have written and not committed, and the moves of rows.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "espalier/base/arrays.hpp"
#include "espalier/base/error.hpp"
#include "history_index.hpp"

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

}  // namespace espalier
