#include "espalier/graph/edge_list.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "espalier/base/error.hpp"

namespace espalier {

namespace {

// Calls visit(row, column, edge, reversed) for every entry that the edges make.
template <class Index, class Visit>
void for_each_entry(const EdgeList<Index>& edges, const RowRange& range, const EdgeOptions& options,
                    Visit visit) {
  for (std::size_t e = 0; e < edges.sources.size(); ++e) {
    const auto u = edges.sources[e], v = edges.targets[e];
    if (options.drop_self_loops && u == v) continue;
    visit(static_cast<std::size_t>(v - range.begin), u, e, false);
    if (options.symmetrize) visit(static_cast<std::size_t>(u - range.begin), v, e, true);
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

// Until equal columns are merged, a column carries whether symmetrize made the entry: in its lowest
// bit, which an unsigned of the same width has room for.
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

// Counting sort of the entries by row; columns are marked. Within a row they stay in the order of
// the edges.
template <class Index>
Csr<Index> place_rows(const EdgeList<Index>& edges, const RowRange& range, std::int64_t n,
                      const EdgeOptions& options) {
  Csr<Index> matrix;
  matrix.rows = range.size();
  matrix.columns = n;
  auto& indptr = matrix.indptr;
  indptr.assign(matrix.rows + 1, 0);
  for_each_entry(edges, range, options,
                 [&](std::size_t row, Index, std::size_t, bool) { ++indptr[row + 1]; });
  for (std::size_t row = 1; row < indptr.size(); ++row) indptr[row] += indptr[row - 1];
  matrix.indices.resize(indptr.back());
  const bool weighted = !edges.weights.empty();
  if (weighted) matrix.values.resize(matrix.indices.size());
  for_each_entry(edges, range, options, [&](std::size_t row, Index column, std::size_t edge, bool reversed) {
    const auto place = static_cast<std::size_t>(indptr[row]++);
    matrix.indices[place] = Marked<Index>::of(column, reversed);
    if (weighted) matrix.values[place] = edges.weights[edge];
  });
  std::copy_backward(indptr.begin(), indptr.end() - 1,
                     indptr.end());  // each now holds its row's end: shift by one
  indptr[0] = 0;
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
  void add(bool reversed, float weight, Duplicates how) {
    float& first = reversed ? first_reversed_ : first_given_;
    auto& count = reversed ? reversed_ : given_;
    if (count++ == 0) first = weight;
    if (given_ + reversed_ == 1)
      weight_ = weight;
    else if (how == Duplicates::kSum)
      weight_ += weight;
    else if (how == Duplicates::kMax)
      weight_ = std::max(weight_, weight);
  }
  float weight() const { return weight_; }
  void count(bool loop, EdgeCounts& counts) const {
    counts.merged += given_ + reversed_ - 1;
    counts.repeated += std::max<std::int64_t>(given_ - 1, 0);
    if (given_ == 0 || reversed_ == 0) return;
    counts.loops += loop;
    counts.mirrored += !loop;
    counts.alike += !loop && first_given_ == first_reversed_;
  }

 private:
  std::int64_t given_ = 0, reversed_ = 0;
  float weight_ = 1, first_given_ = 1, first_reversed_ = 1;
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
      Meeting meeting;
      for (; e < end && Mark::column(matrix.indices[e]) == column; ++e)
        meeting.add(Mark::reversed(matrix.indices[e]), weighted ? matrix.values[e] : 1, how);
      meeting.count(range.begin + row == column, counts);
      matrix.indices[kept] = column;
      if (weighted) matrix.values[kept] = meeting.weight();
      ++kept;
    }
    matrix.indptr[row + 1] = static_cast<std::int64_t>(kept);
  }
  if (kept == matrix.indices.size()) return;
  matrix.indices.resize(kept);
  matrix.indices.shrink_to_fit();
  if (weighted) matrix.values.resize(kept);
  matrix.values.shrink_to_fit();
}

// The first edge with an earlier one between its vertices, in the matrix that both made; there is
// one.
template <class Index>
RepeatedEdge first_repeated(const EdgeList<Index>& edges, const RowRange& range, const EdgeOptions& options,
                            const Csr<Index>& matrix) {
  const auto ends_of = [&](std::size_t e) {
    auto ends = std::make_pair(edges.targets[e], edges.sources[e]);
    if (options.symmetrize && ends.first < ends.second) std::swap(ends.first, ends.second);
    return ends;
  };
  std::vector<bool> seen(matrix.indices.size());
  for (std::size_t e = 0; e < edges.sources.size(); ++e) {
    const auto ends = ends_of(e);
    if (options.drop_self_loops && ends.first == ends.second) continue;
    const auto row = ends.first - range.begin;
    const auto* begin = matrix.indices.data();
    const auto* place =
        std::lower_bound(begin + matrix.row_begin(row), begin + matrix.row_end(row), ends.second);
    if (!seen[place - begin]) {
      seen[place - begin] = true;
      continue;
    }
    std::size_t earlier = 0;
    while (ends_of(earlier) != ends) ++earlier;
    return {static_cast<std::int64_t>(e), static_cast<std::int64_t>(earlier), edges.sources[e],
            edges.targets[e], edges.sources[e] != edges.sources[earlier]};
  }
  ESPALIER_CHECK(false, "no edge is repeated");
  return {};
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
  const bool refuse = options.duplicates == Duplicates::kRefuse;
  if (!refuse) edges = EdgeList<Index>();
  sort_rows(matrix);
  EdgeCounts met;
  merge_duplicates(matrix, range, options.duplicates, met);
  if (refuse && met.repeated + met.mirrored > 0)
    throw DuplicateEdge(first_repeated(edges, range, options, matrix));
  edges = EdgeList<Index>();
  counts.merged += met.merged;
  counts.repeated += met.repeated;
  counts.mirrored += met.mirrored;
  counts.alike += met.alike;
  counts.loops += met.loops;
  return matrix;
}

template <class Index>
Buffer<std::int64_t> feature_edges(const EdgeList<Index>& edges, const RowRange& range,
                                   const EdgeOptions& options, const Csr<Index>& matrix) {
  Buffer<std::int64_t> found(matrix.indices.size(), -1);
  const bool by_weight = options.duplicates == Duplicates::kMax && !edges.weights.empty();
  const auto* begin = matrix.indices.data();
  for_each_entry(edges, range, options, [&](std::size_t row, Index column, std::size_t edge, bool) {
    const auto v = static_cast<std::int64_t>(row);
    const auto* place = std::lower_bound(begin + matrix.row_begin(v), begin + matrix.row_end(v), column);
    auto& best = found[place - begin];
    if (best < 0 || (by_weight && edges.weights[edge] > edges.weights[best]))
      best = static_cast<std::int64_t>(edge);
  });
  return found;
}

// As v ascends, the entries (u, v) of row u are met from left to right: one cursor per row says
// which is next.
template <class Index>
std::int64_t count_one_way(const Csr<Index>& matrix) {
  Buffer<std::int64_t> cursor(matrix.indptr.begin(), matrix.indptr.end() - 1);
  std::int64_t alone = 0;
  for (std::int64_t v = 0; v < matrix.rows; ++v)
    for (const auto u : matrix.row_indices(v)) {
      auto& next = cursor[u];
      const auto end = matrix.row_end(u);
      while (next < end && matrix.indices[next] < v) ++next;
      alone += next == end || matrix.indices[next] != v;
    }
  return alone;
}

template Csr<std::int32_t> build_rows(EdgeList<std::int32_t>&, const RowRange&, std::int64_t,
                                      const EdgeOptions&, EdgeCounts&);
template Csr<std::int64_t> build_rows(EdgeList<std::int64_t>&, const RowRange&, std::int64_t,
                                      const EdgeOptions&, EdgeCounts&);
template Buffer<std::int64_t> feature_edges(const EdgeList<std::int32_t>&, const RowRange&,
                                            const EdgeOptions&, const Csr<std::int32_t>&);
template Buffer<std::int64_t> feature_edges(const EdgeList<std::int64_t>&, const RowRange&,
                                            const EdgeOptions&, const Csr<std::int64_t>&);
template std::int64_t count_one_way(const Csr<std::int32_t>&);
template std::int64_t count_one_way(const Csr<std::int64_t>&);

}  // namespace espalier
