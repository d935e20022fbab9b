#include "espalier/graph/edge_list.hpp"

#include "row_building.hpp"

namespace espalier {

template <class Index>
Csr<Index> build_rows(EdgeList<Index>& edges, const RowRange& range, std::int64_t n,
                      const EdgeOptions& options, EdgeCounts& counts) {
  const auto& [sources, targets] = edges;
  ESPALIER_CHECK(sources.size() == targets.size(), "{} sources", sources.size());
  struct Listed {
    Index source, target;
    bool loop = source == target, turned = false;
  };
  const auto for_each = [&](auto visit) {
    for (std::size_t e = 0; e < sources.size(); ++e)
      for_entries_of(Listed{sources[e], targets[e]}, options, [&](Index row, Index column, bool reversed) {
        visit(row, column, 1.0f, static_cast<std::int64_t>(e), reversed);
      });
  };
  const auto given = std::ssize(sources);
  std::int64_t dropped = 0;
  for (std::int64_t e = 0; options.drop_self_loops && e < given; ++e) dropped += sources[e] == targets[e];
  counts.given += given;
  counts.loops_dropped += dropped;
  if (options.symmetrize) counts.reversed += given - dropped;
  auto matrix = place_rows<Index>(for_each, range, n, false);
  edges = EdgeList<Index>();
  add(counts, finish_rows(range, Duplicates::kFirst, matrix));
  matrix.indices.shrink_to_fit();
  return matrix;
}

template Csr<std::int32_t> build_rows(EdgeList<std::int32_t>&, const RowRange&, std::int64_t,
                                      const EdgeOptions&, EdgeCounts&);
template Csr<std::int64_t> build_rows(EdgeList<std::int64_t>&, const RowRange&, std::int64_t,
                                      const EdgeOptions&, EdgeCounts&);

}  // namespace espalier
