// Entries of the matrix on their way: each has the number of the entry of merged rows that it is,
// or is the reverse of, so that weights, times and features can be brought to it afterwards,
// wherever it went.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "espalier/base/row_range.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/graph/schema.hpp"
#include "espalier/sparse/csr.hpp"
#include "fetch_rows.hpp"

namespace espalier {

/// Rows whose entries know their edges.
template <class Index>
struct PlacedRows {
  Csr<Index> rows;
  Buffer<std::int64_t> origins = {};   ///< [entries] among the merged entries of all ranks
  Buffer<std::int64_t> times = {};     ///< [entries] when each was; empty: nobody says
  Buffer<std::int64_t> features = {};  ///< [entries] whose features each has: the number of an edge
                                       ///< of its relation in the file; empty: of itself
};

template <class Index>
struct PlacedEntry {
  Index row, column;  // of the whole matrix
  std::int64_t origin;
};

inline constexpr const char* kToRows = "edges to their rows";

/// Rows `range` of entries that lie in them, in any order, no two at one place; empties the list.
template <class Index>
PlacedRows<Index> rows_of(Buffer<PlacedEntry<Index>>& entries, const RowRange& range, std::int64_t columns) {
  using Place = std::pair<Index, std::int64_t>;  // column, origin
  PlacedRows<Index> placed;
  auto& rows = placed.rows;
  rows.rows = range.size();
  rows.columns = columns;
  rows.indptr.assign(range.size() + 1, 0);
  for (const auto& entry : entries) ++rows.indptr[entry.row - range.begin + 1];
  std::partial_sum(rows.indptr.begin(), rows.indptr.end(), rows.indptr.begin());
  Buffer<std::int64_t> next(rows.indptr.begin(), rows.indptr.end() - 1);
  Buffer<Place> sorted(entries.size());
  for (const auto& entry : entries) sorted[next[entry.row - range.begin]++] = {entry.column, entry.origin};
  entries = {};
  for (std::int64_t v = 0; v < rows.rows; ++v)
    std::sort(sorted.begin() + rows.row_begin(v), sorted.begin() + rows.row_end(v));
  rows.indices.reserve(sorted.size());
  placed.origins.reserve(sorted.size());
  for (const auto& [column, origin] : sorted) {
    rows.indices.push_back(column);
    placed.origins.push_back(origin);
  }
  return placed;
}

/// Collective. Each edge of these relations, which join a type to itself, gets its reverse, as an
/// entry of the same edge, where that is no edge. How many were added on all ranks.
template <class Index>
std::int64_t add_reverses(const Communicator& comm, const Schema& schema, const RowRange& range,
                          const std::vector<std::uint8_t>& relations, PlacedRows<Index>& placed) {
  Buffer<PlacedEntry<Index>> added;
  const auto& rows = placed.rows;
  exchange_entries<PlacedEntry<Index>>(
      comm, schema.nodes(), rows, kToRows,
      [&](std::int64_t row, std::int64_t e, auto& sent) {
        const int r = schema.relation_of(rows.indices[e]);
        const auto v = range.begin + row, u = schema.vertex_of(rows.indices[e]);
        if (relations[r] && u != v)
          sent.push_back({static_cast<Index>(u), static_cast<Index>(schema.column(r, v)), placed.origins[e]});
      },
      [&](const auto&, const auto&, const auto& reverses) {
        for (const auto& entry : reverses.data)
          if (!std::ranges::binary_search(rows.row_indices(entry.row - range.begin), entry.column))
            added.push_back(entry);
      });
  const auto count = comm.all_reduce(std::ssize(added), Reduction::kSum, "reverse edges");
  added.reserve(added.size() + rows.indices.size());
  for (std::int64_t row = 0; row < rows.rows; ++row)
    for (auto e = rows.row_begin(row); e < rows.row_end(row); ++e)
      added.push_back({static_cast<Index>(range.begin + row), rows.indices[e], placed.origins[e]});
  placed = rows_of(added, range, schema.columns());
  return count;
}

}  // namespace espalier
