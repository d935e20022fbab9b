// The graph as those see it who make an order: undirected, without loops, each edge once in the
// row of either end.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "espalier/comm/owners.hpp"
#include "espalier/graph/edge_list.hpp"
#include "espalier/partition/edge_parts.hpp"
#include "espalier/partition/partition_methods.hpp"

namespace espalier {

/// Collective. My rows of the symmetric pattern, columns ascending; says so when that of the graph
/// is not.
Csr<std::int64_t> symmetric_rows(const VertexPartitionTask& task);

/// Collective. Of A + A^T without its diagonal the pattern of rows even_range(n, ranks, rank), from
/// those of A [n, n], columns ascending in both. A symmetric A is noticed (asymmetry_of) and keeps
/// its memory.
Csr<std::int64_t> symmetric_pattern(const Communicator& comm, Csr<std::int64_t> rows);

/// A whole symmetric pattern with its vertices' weights. Fewer than 2^31 vertices.
struct WholePattern {
  Buffer<std::int64_t> indptr;  ///< [n + 1]
  Buffer<std::int32_t> indices;
  std::vector<ClusterWeights> weights;  ///< [n]
  std::vector<std::int64_t> type_ends;  ///< as VertexPartitionTask's

  std::int32_t nodes() const { return static_cast<std::int32_t>(weights.size()); }
  std::span<const std::int32_t> row(std::int64_t v) const& {
    return {indices.data() + indptr[v], static_cast<std::size_t>(indptr[v + 1] - indptr[v])};
  }
  void row(std::int64_t) const&& = delete;
};

/// Collective. The values of all ranks on rank 0, rank after rank; nothing on the others.
template <class T>
Buffer<T> gather(const Communicator& comm, std::span<const T> mine, std::string_view label) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(comm.size()), 0);
  counts[0] = std::ssize(mine);
  return comm.all_to_all_v(mine, counts, label).data;
}

/// Collective. All of it on rank 0, nothing on the others.
WholePattern gather_pattern(const VertexPartitionTask& task, const Csr<std::int64_t>& mine);
/// The same of the weights of some vertices.
std::vector<ClusterWeights> gather_weights(const VertexPartitionTask& task, RowRange range);

/// Collective. What rank 0 has for all vertices [n], to the ranks that have them.
Buffer<std::uint16_t> scatter_clusters(const VertexPartitionTask& task, std::span<const std::uint16_t> all);

}  // namespace espalier
