// Lists of rows of a matrix, as segments in memory of any space.
#pragma once

#include <initializer_list>
#include <vector>

#include "espalier/base/arrays.hpp"
#include "espalier/sparse/segmented_rows.hpp"
#include "random_graph.hpp"

namespace espalier {

/// Lists of rows one under the other.
struct RowLists {
  std::vector<std::int64_t> rows, offsets = {0};

  void add(std::initializer_list<std::int64_t> more) { add(std::vector<std::int64_t>(more)); }
  void add(const std::vector<std::int64_t>& more) {
    rows.insert(rows.end(), more.begin(), more.end());
    offsets.push_back(std::ssize(rows));
  }
  std::int64_t count() const { return std::ssize(offsets) - 1; }
  std::vector<std::int64_t> list(std::int64_t number) const {
    return {rows.begin() + offsets[number], rows.begin() + offsets[number + 1]};
  }
};

/// Lists with hubs, empty rows, and empty ones at the beginning, between and at the end.
inline RowLists awkward_lists(std::int64_t n) {
  RowLists lists;
  lists.add({});
  lists.add({0});
  lists.add({1});
  lists.add({});
  lists.add({});
  std::vector<std::int64_t> every_third, all;
  for (std::int64_t v = 0; v < n; ++v) {
    if (v % 3 == 0) every_third.push_back(n - 1 - v);
    all.push_back(v);
  }
  lists.add(every_third);
  lists.add({2, 0, 1});
  lists.add(all);
  lists.add({});
  return lists;
}

/// A matrix, and lists of its rows as segments.
template <class Index, class Space>
struct CutRows {
  Csr<Index, Space> matrix;  ///< what the views refer to
  SegmentedRows<Index, Space> segments;
};

template <class Index, class Space>
CutRows<Index, Space> cut(const Space& space, const Csr<Index>& matrix, const RowLists& lists) {
  CutRows<Index, Space> out;
  out.matrix = {matrix.rows,
                matrix.columns,
                copy_to<std::int64_t>(space, matrix.indptr),
                copy_to<Index>(space, matrix.indices),
                copy_to<float>(space, matrix.values),
                matrix.weighted};
  std::vector<RowView<Index>> views;
  for (const auto row : lists.rows)
    views.push_back({out.matrix.indices.data() + matrix.row_begin(row),
                     out.matrix.values_beside() + matrix.row_begin(row), matrix.row_size(row)});
  out.segments = {
      copy_to<RowView<Index>>(space, views), {space, lists.offsets}, matrix.columns, matrix.has_values()};
  return out;
}

}  // namespace espalier
