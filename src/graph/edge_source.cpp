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

}  // namespace

CountedEntries count_entries(const EdgeSource& edges, std::int64_t nodes, const EdgeOptions& options,
                             std::int64_t columns) {
  const bool growing = nodes < 0, wide = columns >= 0;
  CountedEntries counted;
  auto& counts = counted.indptr;  // of row r at r + 1
  counts.assign(growing ? 1 : nodes + 1, 0);
  const auto count = [&](std::int64_t u, std::int64_t v) {
    const auto vertex = wide ? v : std::max(u, v);
    if (vertex + 1 >= std::ssize(counts)) {
      ESPALIER_CHECK(growing, "vertex {} of {}", vertex, nodes);
      counts.resize(vertex + 2, 0);
    }
    ESPALIER_CHECK(!wide || u < columns, "column {} of {}", u, columns);
    counted.digest += digest_of(u, v);
    ++counted.edges.given;
    if (options.drop_self_loops && u == v) {
      ++counted.edges.loops_dropped;
      return;
    }
    ++counts[v + 1];
    if (!options.symmetrize) return;
    ++counts[u + 1];
    ++counted.edges.reversed;
  };
  edges.read([&](const EdgePiece& piece) {
    counted.edges.vanished += piece.vanished;
    for (std::size_t k = 0; k < piece.sources.size(); ++k) count(piece.sources[k], piece.targets[k]);
  });
  counts.shrink_to_fit();
  add_up(counts);
  counted.nodes = std::ssize(counts) - 1;
  counted.columns = wide ? columns : counted.nodes;
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
