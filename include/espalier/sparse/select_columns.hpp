// A row of the product of a sparse matrix and a column selection: its entries in some columns.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// A list of columns, ready to be met by many rows. Beside the list stands a filter, one bit for
/// all ids that agree modulo its size: 64 to 128 bits for each column, at most 512 KiB. Those
/// entries of a row that pass are looked up in the list; a row far longer than it is searched.
template <class Index>
class ColumnSelection {
 public:
  /// `columns`: ascending, no id twice; must stay in place while rows meet it.
  void choose(std::span<const Index> columns) {
    columns_ = columns;
    const auto bits = std::clamp(std::bit_ceil(kBitsPerColumn * columns.size()), kLeastBits, kMostBits);
    filter_.assign(bits / 64, 0);
    mask_ = bits - 1;
    for (const auto column : columns) filter_[place(column) / 64] |= std::uint64_t{1} << (place(column) % 64);
  }

  /// Calls meet(c, k) for every pair with row.indices[k] == columns[c], c ascending.
  template <class Meet>
  void meet(const RowView<Index>& row, const Meet& meet) const {
    if (row.size > kSearchIfLonger * std::ssize(columns_)) return search(row, meet);
    auto from = columns_.begin();
    for (std::int64_t first = 0; first < row.size; first += kAtOnce) {
      const auto end = std::min(first + kAtOnce, row.size);
      std::int64_t passed[kAtOnce], count = 0;
      for (auto k = first; k < end; ++k) {
        passed[count] = k;
        const auto at = place(row.indices[k]);
        count += static_cast<std::int64_t>(filter_[at / 64] >> (at % 64) & 1);
      }
      for (std::int64_t i = 0; i < count; ++i) {
        const auto id = row.indices[passed[i]];
        from = find_from(from, id);
        if (from == columns_.end()) return;
        if (*from == id) meet(from - columns_.begin(), passed[i]);
      }
    }
  }

 private:
  using Place = typename std::span<const Index>::iterator;

  static constexpr std::int64_t kSearchIfLonger = 64, kAtOnce = 128;
  static constexpr std::size_t kBitsPerColumn = 64, kLeastBits = 512, kMostBits = std::size_t{1} << 22;

  std::uint64_t place(Index id) const { return static_cast<std::uint64_t>(id) & mask_; }

  /// The first column from `from` on not below `id`: steps that double, a search in the last one.
  Place find_from(Place from, Index id) const {
    std::ptrdiff_t step = 1;
    const auto end = columns_.end();
    while (step < end - from && from[step - 1] < id) {
      from += step;
      step *= 2;
    }
    return std::lower_bound(from, from + std::min(step, end - from), id);
  }

  template <class Meet>
  void search(const RowView<Index>& row, const Meet& meet) const {
    const Index* from = row.indices;
    const Index* const end = row.indices + row.size;
    for (std::int64_t c = 0; c < std::ssize(columns_); ++c) {
      const auto column = columns_[c];
      from = std::lower_bound(from, end, column);
      if (from == end) return;
      if (*from == column) meet(c, from - row.indices);
    }
  }

  std::span<const Index> columns_;
  Buffer<std::uint64_t> filter_ = Buffer<std::uint64_t>(1, 0);
  std::uint64_t mask_ = 0;
};

}  // namespace espalier
