// Rows whose entries came in pieces, put together: ids ascend again, values beside them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/sparse/entries.hpp"

namespace espalier {

/// Rows, those of several pieces in arrays of their own.
template <class Id, class Space = Cpu>
struct PiecedRows {
  Array<Space, RowView<Id>> rows;  ///< [count]; of one piece: that piece, which must stay
  Entries<Id, Space> joined;       ///< what the others refer to
};

namespace detail {

/// Merges pieces whose ids ascend, and which have none in common, to `ids` and `values` (or null):
/// few entries, or few pieces, one piece after another, from behind.
template <class Id>
void insert_pieces(std::span<const RowView<Id>> pieces, Id* ids, float* values) {
  std::int64_t count = 0;
  for (const auto& piece : pieces) {
    auto from = count, to = count += piece.size;
    for (auto k = piece.size; k > 0;) {
      const bool inserts = from == 0 || ids[from - 1] < piece.indices[k - 1];
      if (inserts)
        --k;
      else
        --from;
      ids[--to] = inserts ? piece.indices[k] : ids[from];
      if (values != nullptr) values[to] = inserts ? piece.values[k] : values[from];
    }
  }
}

/// Any others, by a heap.
template <class Id>
void merge_pieces(std::span<const RowView<Id>> pieces, Id* ids, float* values) {
  // A heap of where each piece is.
  struct Head {
    Id id;
    const RowView<Id>* piece;
    std::int64_t at;
  };
  const auto later = [](const Head& x, const Head& y) { return x.id > y.id; };
  thread_local std::vector<Head> heads;
  heads.clear();
  for (const auto& piece : pieces)
    if (piece.size > 0) heads.push_back({piece.indices[0], &piece, 0});
  std::ranges::make_heap(heads, later);
  while (!heads.empty()) {
    std::ranges::pop_heap(heads, later);
    auto& head = heads.back();
    // What comes before the next piece goes at once.
    const auto limit = heads.size() > 1 ? heads.front().id : std::numeric_limits<Id>::max();
    do {
      *ids++ = head.piece->indices[head.at];
      if (values != nullptr) *values++ = head.piece->values[head.at];
      ++head.at;
    } while (head.at < head.piece->size && head.piece->indices[head.at] < limit);
    if (head.at == head.piece->size) {
      heads.pop_back();
      continue;
    }
    head.id = head.piece->indices[head.at];
    std::ranges::push_heap(heads, later);
  }
}

}  // namespace detail

/// Piece j is of row row_of[j] of `rows`; a row without a piece is empty. On a GPU the host waits
/// once.
template <class Id>
PiecedRows<Id, Cuda> join_rows(const Cuda& cuda, std::span<const RowView<Id>> pieces,
                               const std::int64_t* row_of, std::int64_t rows, bool values);
template <class Id>
PiecedRows<Id> join_rows(const Cpu& cpu, std::span<const RowView<Id>> pieces, const std::int64_t* row_of,
                         std::int64_t rows, bool values) {
  // 1. The pieces of each row together.
  Buffer<std::int64_t> begins(rows + 1, 0);
  for (std::int64_t j = 0; j < std::ssize(pieces); ++j) ++begins[row_of[j] + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  Buffer<RowView<Id>> by_row(pieces.size());
  auto next = begins;
  for (std::int64_t j = 0; j < std::ssize(pieces); ++j) by_row[next[row_of[j]]++] = pieces[j];

  // 2. How many entries rows of several pieces have.
  PiecedRows<Id> all;
  all.rows.resize(rows);
  auto& joined = all.joined;
  joined.offsets.assign(rows + 1, 0);
  for (std::int64_t r = 0; r < rows; ++r) {
    std::int64_t size = 0;
    for (auto j = begins[r]; j < begins[r + 1]; ++j) size += by_row[j].size;
    joined.offsets[r + 1] = joined.offsets[r] + (begins[r + 1] - begins[r] > 1 ? size : 0);
  }
  joined.ids.resize(joined.offsets.back());
  joined.values.resize(values ? joined.offsets.back() : 0);
  const Beside<const float> beside(values, joined.values);

  // 3. Their entries.
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 64)
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto count = begins[r + 1] - begins[r], begin = joined.begin(r);
    if (count == 1) {
      all.rows[r] = by_row[begins[r]];
      continue;
    }
    const std::span<const RowView<Id>> of_row(by_row.data() + begins[r], static_cast<std::size_t>(count));
    const bool few = count <= 4 || joined.size(r) <= 64;
    (few ? detail::insert_pieces<Id> : detail::merge_pieces<Id>)(of_row, joined.ids.data() + begin,
                                                                 values ? joined.values.data() + begin
                                                                        : nullptr);
    all.rows[r] = {joined.ids.data() + begin, beside + begin, joined.size(r)};
  }
  return all;
}

}  // namespace espalier
