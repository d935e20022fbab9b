// Rows that are cut, where a matrix is set up: what concerns whole rows is found by their owners.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "espalier/product/dist_csr.hpp"

namespace espalier {

/// Numbers of rows on their way between holders and owners, down a process column. Both know from
/// the holders of every row who sends which rows, so no ids travel.
class HeldRows {
 public:
  /// Of the rows of a cut matrix in a range; `several`: of those that have several holders.
  template <class Index>
  HeldRows(const DistCsr<Index>& a, RowRange vertices, bool several);

  std::vector<std::int64_t> held;   ///< rows of a.local, by owner
  std::vector<std::int64_t> owned;  ///< of what arrives, by holder: the place of its row

  /// Collective over the column. of_held[k] of row held[k] to its owner, where number j is
  /// of owned[j].
  template <class T>
  Buffer<T> to_owners(const Buffer<T>& of_held) const;
  template <class T>
  Buffer<T> to_holders(const Buffer<T>& of_owned) const;
  /// Collective. sizes[k] values of row held[k], which stand one after another; and the way back.
  template <class T>
  Buffer<T> to_owners(const Buffer<std::int64_t>& sizes, const Buffer<T>& values) const;
  template <class T>
  Buffer<T> to_holders(const Buffer<std::int64_t>& sizes, const Buffer<T>& values) const;

 private:
  const Communicator& column_;
  std::vector<std::int64_t> held_counts_, owned_counts_;  // rows of each rank
};

/// Collective over the column where rows are cut. Of every segment of my rows (a relation's part of
/// a row; where columns are vertices, the row) what its entries sum up to over all holders: float64
/// sums in the order of columns, the same for any cut.
template <class Index>
Buffer<double> segment_sums(const DistCsr<Index>& a);

/// Calls use(begin, end) for the segments of a row of `local`, in order; where columns are vertices
/// for all of it, also without entries.
template <class Index, class Use>
void for_each_segment_of(const Csr<Index>& local, const ColumnsOf& columns, std::int64_t row, Use use) {
  const auto last = local.row_end(row);
  if (columns.begins == nullptr) return use(local.row_begin(row), last);
  const auto first = local.indices.begin();
  for (auto k = local.row_begin(row); k < last;) {
    const auto bound = columns.begins[columns.relation(local.indices[k]) + 1];
    const auto end = std::lower_bound(first + k, first + last, bound,
                                      [](Index column, std::int64_t behind) { return column < behind; }) -
                     first;
    use(k, end);
    k = end;
  }
}

/// Calls use(row, begin, end) for those of all rows.
template <class Index, class Use>
void for_each_segment(const Csr<Index>& local, const ColumnsOf& columns, Use use) {
  for (std::int64_t row = 0; row < local.rows; ++row)
    for_each_segment_of(local, columns, row,
                        [&](std::int64_t begin, std::int64_t end) { use(row, begin, end); });
}

}  // namespace espalier
