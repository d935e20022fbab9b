#include "espalier/graph/edge_list.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "espalier/base/error.hpp"

namespace espalier {

namespace {

// Calls visit(row, column, edge) for every entry that the edges make.
template <class Index, class Visit>
void for_each_entry(const EdgeList<Index>& edges, const RowRange& range, const EdgeOptions& options,
                    Visit visit) {
  for (std::size_t e = 0; e < edges.sources.size(); ++e) {
    const auto u = edges.sources[e], v = edges.targets[e];
    if (options.drop_self_loops && u == v) continue;
    visit(static_cast<std::size_t>(v - range.begin), u, e);
    if (options.symmetrize) visit(static_cast<std::size_t>(u - range.begin), v, e);
  }
}

template <class Index>
void count_edges(const EdgeList<Index>& edges, const EdgeOptions& options, EdgeCounts& counts) {
  const auto given = static_cast<std::int64_t>(edges.sources.size());
  counts.given += given;
  std::int64_t dropped = 0;
  if (options.drop_self_loops)
    for (std::size_t e = 0; e < edges.sources.size(); ++e) dropped += edges.sources[e] == edges.targets[e];
  counts.loops_dropped += dropped;
  if (options.symmetrize) counts.reversed += given - dropped;
}

// Counting sort of the entries by row. Within a row they stay in the order of the edges.
template <class Index>
Csr<Index> place_rows(const EdgeList<Index>& edges, const RowRange& range, std::int64_t n,
                      const EdgeOptions& options) {
  Csr<Index> matrix;
  matrix.rows = range.size();
  matrix.columns = n;
  auto& indptr = matrix.indptr;
  indptr.assign(static_cast<std::size_t>(matrix.rows) + 1, 0);
  for_each_entry(edges, range, options, [&](std::size_t row, Index, std::size_t) { ++indptr[row + 1]; });
  for (std::size_t row = 1; row < indptr.size(); ++row) indptr[row] += indptr[row - 1];
  matrix.indices.resize(static_cast<std::size_t>(indptr.back()));
  const bool weighted = !edges.weights.empty();
  if (weighted) matrix.values.resize(matrix.indices.size());
  for_each_entry(edges, range, options, [&](std::size_t row, Index column, std::size_t edge) {
    const auto place = static_cast<std::size_t>(indptr[row]++);
    matrix.indices[place] = column;
    if (weighted) matrix.values[place] = edges.weights[edge];
  });
  std::copy_backward(indptr.begin(), indptr.end() - 1,
                     indptr.end());  // each now holds its row's end: shift by one
  indptr[0] = 0;
  return matrix;
}

// Sorts one row of a weighted matrix; equal columns keep their order, so that their sum has one value.
template <class Index>
void sort_weighted_row(Index* columns, float* weights, std::size_t size,
                       std::vector<std::pair<Index, float>>& scratch) {
  scratch.clear();
  for (std::size_t e = 0; e < size; ++e) scratch.emplace_back(columns[e], weights[e]);
  std::stable_sort(scratch.begin(), scratch.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t e = 0; e < size; ++e) std::tie(columns[e], weights[e]) = scratch[e];
}

template <class Index>
void sort_rows(Csr<Index>& matrix) {
  std::vector<std::pair<Index, float>> scratch;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    auto* columns = matrix.indices.data() + matrix.row_begin(row);
    const auto size = static_cast<std::size_t>(matrix.row_size(row));
    if (std::is_sorted(columns, columns + size)) continue;
    if (matrix.has_values())
      sort_weighted_row(columns, matrix.values.data() + matrix.row_begin(row), size, scratch);
    else
      std::sort(columns, columns + size);
  }
}

// Merges equal neighbours of sorted rows in place; returns how many entries that took away.
template <class Index>
std::int64_t merge_duplicates(Csr<Index>& matrix) {
  std::size_t kept = 0;
  std::int64_t begin = 0;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    const auto end = matrix.row_end(row);
    const auto row_start = kept;
    for (auto e = static_cast<std::size_t>(begin); e < static_cast<std::size_t>(end); ++e) {
      if (kept > row_start && matrix.indices[kept - 1] == matrix.indices[e]) {
        if (matrix.has_values()) matrix.values[kept - 1] += matrix.values[e];
        continue;
      }
      matrix.indices[kept] = matrix.indices[e];
      if (matrix.has_values()) matrix.values[kept] = matrix.values[e];
      ++kept;
    }
    begin = end;
    matrix.indptr[static_cast<std::size_t>(row) + 1] = static_cast<std::int64_t>(kept);
  }
  const auto removed = matrix.indices.size() - kept;
  if (removed > 0) {
    matrix.indices.resize(kept);
    matrix.indices.shrink_to_fit();
    if (matrix.has_values()) matrix.values.resize(kept);
    matrix.values.shrink_to_fit();
  }
  return static_cast<std::int64_t>(removed);
}

}  // namespace

template <class Index>
Csr<Index> build_rows(EdgeList<Index>& edges, const RowRange& range, std::int64_t n,
                      const EdgeOptions& options, EdgeCounts& counts) {
  ESPALIER_CHECK(edges.sources.size() == edges.targets.size(), "{} sources", edges.sources.size());
  ESPALIER_CHECK(edges.weights.empty() || edges.weights.size() == edges.sources.size(), "{} weights",
                 edges.weights.size());
  count_edges(edges, options, counts);
  auto matrix = place_rows(edges, range, n, options);
  edges = EdgeList<Index>();
  sort_rows(matrix);
  counts.merged += merge_duplicates(matrix);
  return matrix;
}

// As v ascends, the entries (u, v) of row u must be met from left to right: one cursor per row says which is
// next.
template <class Index>
bool is_symmetric(const Csr<Index>& matrix) {
  Buffer<std::int64_t> cursor(matrix.indptr.begin(), matrix.indptr.end() - 1);
  for (std::int64_t v = 0; v < matrix.rows; ++v)
    for (const auto u : matrix.row_indices(v)) {
      auto& next = cursor[static_cast<std::size_t>(u)];
      if (next == matrix.row_end(u) || matrix.indices[static_cast<std::size_t>(next)] != v) return false;
      ++next;
    }
  return true;
}

template Csr<std::int32_t> build_rows(EdgeList<std::int32_t>&, const RowRange&, std::int64_t,
                                      const EdgeOptions&, EdgeCounts&);
template Csr<std::int64_t> build_rows(EdgeList<std::int64_t>&, const RowRange&, std::int64_t,
                                      const EdgeOptions&, EdgeCounts&);
template bool is_symmetric(const Csr<std::int32_t>&);
template bool is_symmetric(const Csr<std::int64_t>&);

}  // namespace espalier
