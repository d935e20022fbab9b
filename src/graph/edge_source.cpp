#include "espalier/graph/edge_source.hpp"

#include "espalier/base/mix.hpp"
#include "row_building.hpp"

namespace espalier {

namespace {

// A sum, of which each edge is a term.
std::uint64_t digest_of(std::int64_t source, std::int64_t target) {
  return mix(static_cast<std::uint64_t>(source) ^ static_cast<std::uint64_t>(target) << 32 ^
             static_cast<std::uint64_t>(target) >> 32);
}

[[noreturn]] void refuse_change(const EdgeSource& edges) {
  input_error("{}: changed while it was read; import it again", edges.name());
}

// Edges that were counted and are read again.
struct SecondReading {
  const EdgeSource& edges;
  std::uint64_t& digest;
};

template <class Visit>
void for_each_edge(const SecondReading& of, Visit visit) {
  for_each_edge(of.edges, [&](std::int64_t u, std::int64_t v, float weight, std::int64_t number) {
    of.digest += digest_of(u, v);
    visit(u, v, weight, number);
  });
}

// Counts of the rows of vertices that are met one after the other.
class RowCounts {
 public:
  explicit RowCounts(std::int64_t nodes) : growing_(nodes < 0), counts_(growing_ ? 1 : nodes + 1, 0) {}
  void see(std::int64_t vertex) {
    if (vertex + 1 < std::ssize(counts_)) return;
    ESPALIER_CHECK(growing_, "vertex {} of {}", vertex, counts_.size() - 1);
    counts_.resize(vertex + 2, 0);
  }
  void add(std::int64_t row) { ++counts_[row + 1]; }
  // Where each row begins.
  Buffer<std::int64_t> finish() {
    counts_.shrink_to_fit();
    add_up(counts_);
    return std::move(counts_);
  }

 private:
  bool growing_;
  Buffer<std::int64_t> counts_;  // of row r at r + 1
};

}  // namespace

CountedEntries count_entries(const EdgeSource& edges, std::int64_t nodes, const EdgeOptions& options) {
  CountedEntries counted;
  RowCounts rows(nodes);
  for_each_edge(edges, [&](std::int64_t u, std::int64_t v, float, std::int64_t) {
    rows.see(std::max(u, v));
    counted.digest += digest_of(u, v);
    ++counted.edges.given;
    if (options.drop_self_loops && u == v) {
      ++counted.edges.loops_dropped;
      return;
    }
    rows.add(v);
    if (!options.symmetrize) return;
    rows.add(u);
    ++counted.edges.reversed;
  });
  counted.indptr = rows.finish();
  counted.nodes = counted.columns = std::ssize(counted.indptr) - 1;
  return counted;
}

CountedEntries count_wide_entries(const EdgeSource& edges, std::int64_t rows, std::int64_t columns) {
  CountedEntries counted{rows, columns, {}, {}, 0};
  RowCounts counts(rows);
  for_each_edge(edges, [&](std::int64_t column, std::int64_t row, float, std::int64_t) {
    counts.see(row);
    ESPALIER_CHECK(column < columns, "column {} of {}", column, columns);
    counted.digest += digest_of(column, row);
    ++counted.edges.given;
    counts.add(row);
  });
  counted.indptr = counts.finish();
  return counted;
}

template <class Index>
Csr<Index> build_rows(const EdgeSource& edges, CountedEntries counted, const EdgeOptions& options,
                      EdgeCounts& counts) {
  Csr<Index> matrix;
  matrix.rows = counted.nodes;
  matrix.columns = counted.columns;
  matrix.indptr = std::move(counted.indptr);
  const RowRange all{0, counted.nodes};
  std::uint64_t digest = 0;
  const bool fit =
      place_entries(SecondReading{edges, digest}, all, weighs(edges.weighted(), options), options, matrix);
  if (!fit || digest != counted.digest) refuse_change(edges);
  counts = counted.edges;
  finish_rows(edges, all, options, matrix, counts);
  return matrix;
}

template <class Index>
Buffer<std::int64_t> feature_edges(const EdgeSource& edges, const EdgeOptions& options,
                                   const Csr<Index>& matrix) {
  auto found = find_feature_edges(edges, edges.weighted(), {0, matrix.rows}, options, matrix);
  if (std::ranges::find(found, -1) != found.end()) refuse_change(edges);
  return found;
}

template <class Index>
Buffer<std::int64_t> standing_edges(const EdgeSource& edges, const EdgeOptions& options,
                                    const Csr<Index>& matrix, const Buffer<std::int64_t>& first) {
  Buffer<std::int64_t> found;
  for_each_edge(edges, [&](std::int64_t source, std::int64_t target, float, std::int64_t) {
    const bool dropped = options.drop_self_loops && source == target;
    const auto place = dropped ? -1 : place_of(matrix, target, source);
    if (place < 0 && !dropped) refuse_change(edges);
    found.push_back(dropped ? -1 : first[place]);
  });
  return found;
}

template Csr<std::int32_t> build_rows(const EdgeSource&, CountedEntries, const EdgeOptions&, EdgeCounts&);
template Csr<std::int64_t> build_rows(const EdgeSource&, CountedEntries, const EdgeOptions&, EdgeCounts&);
template Buffer<std::int64_t> feature_edges(const EdgeSource&, const EdgeOptions&, const Csr<std::int32_t>&);
template Buffer<std::int64_t> feature_edges(const EdgeSource&, const EdgeOptions&, const Csr<std::int64_t>&);
template Buffer<std::int64_t> standing_edges(const EdgeSource&, const EdgeOptions&, const Csr<std::int32_t>&,
                                             const Buffer<std::int64_t>&);
template Buffer<std::int64_t> standing_edges(const EdgeSource&, const EdgeOptions&, const Csr<std::int64_t>&,
                                             const Buffer<std::int64_t>&);

}  // namespace espalier
