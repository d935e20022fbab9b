// Rows whose columns are in any order and repeated, as they stand in a raw file, as rows of the
// adjacency matrix: ascending, each once. What became of an entry is kept, so that weights,
// features and times of edges can follow: entry k of the rows is made of
//
//     members[begins[k]] .. members[begins[k + 1])
//
// entries of the raw rows, in the order of the file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/graph/row_range.hpp"
#include "espalier/graph/schema.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

template <class Index>
struct MergedRows {
  Csr<Index> rows;                    ///< without values
  Buffer<std::int64_t> members;       ///< entries of the raw rows; loops may be missing
  Buffer<std::int64_t> begins = {0};  ///< [entries + 1]
  std::int64_t loops = 0;             ///< entries that were left out
  std::int64_t repeated = 0;          ///< entries that repeat an earlier one
  std::int64_t places = 0;            ///< entries of `rows` that stand for several
};

/// `raw`: the rows of `range`, columns of the schema. What is repeated becomes one entry; loops
/// stay unless they are dropped.
template <class Index>
MergedRows<Index> merge_rows(const Schema& schema, const RowRange& range, const Csr<Index>& raw,
                             bool drop_loops) {
  MergedRows<Index> merged;
  auto& rows = merged.rows;
  rows.rows = raw.rows;
  rows.columns = raw.columns;
  rows.indptr.assign(raw.rows + 1, 0);
  merged.members.reserve(raw.indices.size());
  merged.begins.reserve(raw.indices.size() + 1);
  rows.indices.reserve(raw.indices.size());
  std::vector<std::int64_t> row;
  for (std::int64_t v = 0; v < raw.rows; ++v) {
    row.clear();
    for (auto e = raw.row_begin(v); e < raw.row_end(v); ++e)
      if (!drop_loops || schema.vertex_of(raw.indices[e]) != range.begin + v) row.push_back(e);
    merged.loops += raw.row_size(v) - std::ssize(row);
    const auto before = [&](std::int64_t a, std::int64_t b) { return raw.indices[a] < raw.indices[b]; };
    if (!std::ranges::is_sorted(row, before)) std::ranges::stable_sort(row, before);
    for (std::size_t k = 0; k < row.size(); ++k) {
      const bool again = k > 0 && raw.indices[row[k]] == raw.indices[row[k - 1]];
      if (again) {
        ++merged.repeated;
        merged.places += merged.begins.end()[-1] - merged.begins.end()[-2] == 1;
        merged.begins.pop_back();
      } else {
        rows.indices.push_back(raw.indices[row[k]]);
      }
      merged.members.push_back(row[k]);
      merged.begins.push_back(std::ssize(merged.members));
    }
    rows.indptr[v + 1] = rows.entries();
  }
  return merged;
}

}  // namespace espalier
