#include "espalier/graph/edge_list.hpp"

#include "row_building.hpp"

namespace espalier {

namespace {

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

// There is one.
template <class Index>
RepeatedEdge first_repeated(const EdgeList<Index>& edges, const RowRange& range, const EdgeOptions& options,
                            const Csr<Index>& matrix) {
  FirstRepeated<Index> repeated(matrix, range);
  const auto ends = [&](std::size_t e) { return ends_of(edges.sources[e], edges.targets[e], options); };
  for (std::size_t e = 0; e < edges.sources.size(); ++e)
    if (!options.drop_self_loops || edges.sources[e] != edges.targets[e])
      repeated.meet(ends(e).first, ends(e).second,
                    {static_cast<std::int64_t>(e), 0, edges.sources[e], edges.targets[e]});
  auto found = repeated.found();
  while (ends(found.earlier) != ends(found.edge)) ++found.earlier;
  found.reversed = edges.sources[found.earlier] != found.source;
  return found;
}

}  // namespace

template <class Index>
Csr<Index> build_rows(EdgeList<Index>& edges, const RowRange& range, std::int64_t n,
                      const EdgeOptions& options, EdgeCounts& counts) {
  ESPALIER_CHECK(edges.sources.size() == edges.targets.size(), "{} sources", edges.sources.size());
  ESPALIER_CHECK(edges.weights.empty() || edges.weights.size() == edges.sources.size(), "{} weights",
                 edges.weights.size());
  count_edges(edges, options, counts);
  auto matrix = place_rows<Index>(edges, range, n, weighs(!edges.weights.empty(), options), options);
  if (options.duplicates != Duplicates::kRefuse) edges = EdgeList<Index>();
  const auto met = finish_rows(range, options.duplicates, matrix);
  if (options.duplicates == Duplicates::kRefuse && met.repeated + met.mirrored > 0)
    throw DuplicateEdge(first_repeated(edges, range, options, matrix));
  add(counts, met);
  edges = EdgeList<Index>();
  matrix.indices.shrink_to_fit();
  matrix.values.shrink_to_fit();
  return matrix;
}

template <class Index>
Buffer<std::int64_t> feature_edges(const EdgeList<Index>& edges, const RowRange& range,
                                   const EdgeOptions& options, const Csr<Index>& matrix) {
  return find_feature_edges(edges, !edges.weights.empty(), range, options, matrix);
}

template Csr<std::int32_t> build_rows(EdgeList<std::int32_t>&, const RowRange&, std::int64_t,
                                      const EdgeOptions&, EdgeCounts&);
template Csr<std::int64_t> build_rows(EdgeList<std::int64_t>&, const RowRange&, std::int64_t,
                                      const EdgeOptions&, EdgeCounts&);
template Buffer<std::int64_t> feature_edges(const EdgeList<std::int32_t>&, const RowRange&,
                                            const EdgeOptions&, const Csr<std::int32_t>&);
template Buffer<std::int64_t> feature_edges(const EdgeList<std::int64_t>&, const RowRange&,
                                            const EdgeOptions&, const Csr<std::int64_t>&);

}  // namespace espalier
