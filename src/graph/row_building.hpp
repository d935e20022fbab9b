// The one builder of rows: entries of the matrix from edges, wherever these lie: in a list
// (edge_list.cpp), in files that ranks read together (edge_source.cpp), in the rows of a graph file
// (edge_tables.hpp).
//
// `for_each` goes over the edges: it calls visit(row, column, weight, edge, reversed) for every
// entry that they make in the rows of this rank, in the order of the edges, the same every time.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "espalier/base/error.hpp"
#include "espalier/graph/edge_list.hpp"

namespace espalier {

// Calls visit(row, column, reversed) for the entries of one edge, of which one may be a loop.
template <class Edge, class Visit>
void for_entries_of(const Edge& edge, const EdgeOptions& options, Visit visit) {
  if (options.drop_self_loops && edge.loop) return;
  visit(edge.target, edge.source, edge.turned);
  if (options.symmetrize) visit(edge.source, edge.target, true);
}

// Until equal columns are merged, a column carries whether the entry is the reverse of an edge: in
// its lowest bit, which an unsigned of the same width has room for.
template <class Index>
struct Marked {
  using Bits = std::make_unsigned_t<Index>;
  static Index of(Index column, bool reversed) {
    return static_cast<Index>(static_cast<Bits>(column) << 1 | static_cast<Bits>(reversed));
  }
  static Index column(Index marked) { return static_cast<Index>(static_cast<Bits>(marked) >> 1); }
  static bool reversed(Index marked) { return (marked & 1) != 0; }
  static bool before(Index a, Index b) { return column(a) < column(b); }
};

// Makes of counts, those of row r at r + 1, where each row begins.
inline void add_up(Buffer<std::int64_t>& indptr) {
  for (std::size_t row = 1; row < indptr.size(); ++row) indptr[row] += indptr[row - 1];
}

// Have entries weights?
inline bool weighs(bool edges, const EdgeOptions& options) {
  return edges || options.duplicates == Duplicates::kCount;
}

// Entries at the places of their rows, which begin at `indptr`; columns are marked. Within a row
// they stay in the order of the edges. False where they are others than were counted.
template <class Index, class ForEach>
bool place_entries(ForEach for_each, const RowRange& range, bool weighted, Csr<Index>& matrix) {
  auto& indptr = matrix.indptr;
  const auto entries = indptr.back();
  matrix.indices.resize(entries);
  if (weighted) matrix.values.resize(entries);
  matrix.weighted = weighted;
  bool good = true;
  for_each([&](auto row, auto column, float weight, std::int64_t, bool reversed) {
    const auto local = static_cast<std::int64_t>(row) - range.begin;
    if (local >= matrix.rows || indptr[local] >= entries) {
      good = false;
      return;
    }
    const auto place = indptr[local]++;
    matrix.indices[place] = Marked<Index>::of(static_cast<Index>(column), reversed);
    if (weighted) matrix.values[place] = weight;
  });
  std::copy_backward(indptr.begin(), indptr.end() - 1,
                     indptr.end());  // each now holds its row's end: shift by one
  indptr[0] = 0;
  return good;
}

// The entries of all edges, as place_entries() leaves them: a counting sort by row.
template <class Index, class ForEach>
Csr<Index> place_rows(ForEach for_each, const RowRange& range, std::int64_t columns, bool weighted) {
  Csr<Index> matrix;
  matrix.rows = range.size();
  matrix.columns = columns;
  matrix.indptr.assign(matrix.rows + 1, 0);
  for_each([&](std::int64_t row, std::int64_t, float, std::int64_t, bool) {
    ++matrix.indptr[row - range.begin + 1];
  });
  add_up(matrix.indptr);
  place_entries(for_each, range, weighted, matrix);
  return matrix;
}

// Sorts one row of a weighted matrix; equal columns keep their order, so that their sum has
// one value.
template <class Index>
void sort_weighted_row(Index* columns, float* weights, std::size_t size,
                       std::vector<std::pair<Index, float>>& scratch) {
  scratch.clear();
  for (std::size_t e = 0; e < size; ++e) scratch.emplace_back(columns[e], weights[e]);
  std::stable_sort(scratch.begin(), scratch.end(),
                   [](const auto& a, const auto& b) { return Marked<Index>::before(a.first, b.first); });
  for (std::size_t e = 0; e < size; ++e) std::tie(columns[e], weights[e]) = scratch[e];
}

template <class Index>
void sort_rows(Csr<Index>& matrix) {
  std::vector<std::pair<Index, float>> scratch;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    auto* columns = matrix.indices.data() + matrix.row_begin(row);
    const auto size = static_cast<std::size_t>(matrix.row_size(row));
    if (std::is_sorted(columns, columns + size, Marked<Index>::before)) continue;
    if (matrix.has_values())
      sort_weighted_row(columns, matrix.values.data() + matrix.row_begin(row), size, scratch);
    else
      std::sort(columns, columns + size, Marked<Index>::before);
  }
}

// The entries of one place, in the order of the edges, become one.
class Meeting {
 public:
  explicit Meeting(Duplicates how) : how_(how) {}

  void add(bool reversed, float weight) {
    float& first = reversed ? first_reversed_ : first_given_;
    auto& count = reversed ? reversed_ : given_;
    if (count++ == 0) first = weight;
    if (given_ + reversed_ == 1 || how_ == Duplicates::kLast)
      weight_ = weight;
    else if (how_ == Duplicates::kMax)
      weight_ = std::max(weight_, static_cast<double>(weight));
    else if (how_ != Duplicates::kFirst)
      weight_ += weight;
  }
  float weight() const {
    const auto met = static_cast<double>(given_ + reversed_);
    return static_cast<float>(how_ == Duplicates::kMean ? weight_ / met : weight_);
  }
  void count(bool loop, EdgeCounts& counts) const {
    counts.merged += given_ + reversed_ - 1;
    counts.repeated += std::max<std::int64_t>(given_ - 1, 0);
    counts.places += given_ > 1;
    if (given_ == 0 || reversed_ == 0) return;
    counts.loops += loop;
    counts.mirrored += !loop;
    counts.alike += !loop && first_given_ == first_reversed_;
  }

 private:
  Duplicates how_;
  std::int64_t given_ = 0, reversed_ = 0;
  double weight_ = 1;
  float first_given_ = 1, first_reversed_ = 1;
};

// Merges equal neighbours of sorted rows in place and takes the marks away.
template <class Index>
void merge_duplicates(Csr<Index>& matrix, const RowRange& range, Duplicates how, EdgeCounts& counts) {
  using Mark = Marked<Index>;
  const bool weighted = matrix.has_values();
  std::size_t kept = 0, e = 0;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    const auto end = static_cast<std::size_t>(matrix.row_end(row));
    while (e < end) {
      const auto column = Mark::column(matrix.indices[e]);
      if (e + 1 == end || Mark::column(matrix.indices[e + 1]) != column) {  // alone, as most are
        matrix.indices[kept] = column;
        if (weighted) matrix.values[kept] = matrix.values[e];
        ++kept, ++e;
        continue;
      }
      Meeting meeting(how);
      for (; e < end && Mark::column(matrix.indices[e]) == column; ++e)
        meeting.add(Mark::reversed(matrix.indices[e]), weighted ? matrix.values[e] : 1);
      meeting.count(range.begin + row == column, counts);
      matrix.indices[kept] = column;
      if (weighted) matrix.values[kept] = meeting.weight();
      ++kept;
    }
    matrix.indptr[row + 1] = static_cast<std::int64_t>(kept);
  }
  matrix.indices.resize(kept);
  if (weighted) matrix.values.resize(kept);
}

// The place of an entry; -1: there is none, as in a file that has changed since it was read.
template <class Index>
std::int64_t place_of(const Csr<Index>& matrix, std::int64_t row, std::int64_t column) {
  if (row < 0 || row >= matrix.rows) return -1;
  const auto columns = matrix.row_indices(row);
  const auto found = std::ranges::lower_bound(columns, column);
  if (found == columns.end() || *found != column) return -1;
  return matrix.row_begin(row) + (found - columns.begin());
}

using CountFields = std::array<std::int64_t, sizeof(EdgeCounts) / sizeof(std::int64_t)>;

inline void add(EdgeCounts& counts, const EdgeCounts& more) {
  auto sums = std::bit_cast<CountFields>(counts);
  const auto terms = std::bit_cast<CountFields>(more);
  for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += terms[k];
  counts = std::bit_cast<EdgeCounts>(sums);
}

// Of a matrix whose entries are placed: sorted, equal ones merged.
template <class Index>
EdgeCounts finish_rows(const RowRange& range, Duplicates how, Csr<Index>& matrix) {
  sort_rows(matrix);
  EdgeCounts met;
  merge_duplicates(matrix, range, how, met);
  return met;
}

// Of each entry one of the edges that meet there: the first, but for those of which
// replaces(place, weight, edge, kept) says that they take the place of the one that is kept.
template <class Index, class ForEach, class Replaces>
Buffer<std::int64_t> find_edges(ForEach for_each, const RowRange& range, const Csr<Index>& matrix,
                                Replaces replaces) {
  Buffer<std::int64_t> found(matrix.indices.size(), -1);
  for_each([&](auto row, auto column, float weight, std::int64_t edge, bool) {
    const auto place = place_of(matrix, row - range.begin, column);
    if (place >= 0 && (replaces(place, weight, edge, found[place]) || found[place] < 0)) found[place] = edge;
  });
  return found;
}

// That from which each entry has its features.
template <class Index, class ForEach>
Buffer<std::int64_t> find_feature_edges(ForEach for_each, bool weighted, const RowRange& range,
                                        const EdgeOptions& options, const Csr<Index>& matrix) {
  const bool kept = options.features == DuplicateFeatures::kKept;
  const bool by_weight = kept && options.duplicates == Duplicates::kMax && weighted;
  const bool last =
      options.features == DuplicateFeatures::kLast || (kept && options.duplicates == Duplicates::kLast);
  Buffer<float> largest(by_weight ? matrix.indices.size() : 0, -1);
  return find_edges(for_each, range, matrix,
                    [&](std::int64_t place, float weight, std::int64_t, std::int64_t) {
                      if (!by_weight) return last;
                      return weight > largest[place] ? (largest[place] = weight, true) : false;
                    });
}

}  // namespace espalier
