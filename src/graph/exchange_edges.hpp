// Brings generated edges to the ranks that own their rows, a few million at a time, so that the
// send buffers stay small.
#pragma once

#include "espalier/base/group_stably.hpp"
#include "espalier/graph/edge_list.hpp"
#include "espalier/graph/generate.hpp"
#include "espalier/graph/row_range.hpp"

namespace espalier {

namespace exchange_detail {

inline constexpr std::int64_t kEdgesPerRound = std::int64_t{1} << 22;

template <class Index>
struct Entry {
  Index row, column;
};

}  // namespace exchange_detail

/// Collective. Rank r makes edges [E r/p, E (r+1)/p) with edge_at(e) and gets those that end in its
/// even range of the n rows; with `symmetrize` every edge is also taken the other way round. The
/// order of what a rank gets depends on p.
template <class Index, class EdgeAt>
EdgeList<Index> exchange_edges(const Communicator& comm, std::int64_t n, std::int64_t edges, bool symmetrize,
                               EdgeAt edge_at) {
  using Entry = exchange_detail::Entry<Index>;
  const auto mine = even_range(edges, comm.size(), comm.rank());
  const auto rounds =
      (edges / comm.size() + exchange_detail::kEdgesPerRound) / exchange_detail::kEdgesPerRound;
  EdgeList<Index> received;
  received.sources.reserve(mine.size() * (symmetrize ? 2 : 1));
  received.targets.reserve(received.sources.capacity());
  for (std::int64_t round = 0; round < rounds; ++round) {
    Buffer<Entry> made;
    const auto part = even_range(mine.size(), rounds, round);
    made.reserve(part.size() * (symmetrize ? 2 : 1));
    for (auto e = mine.begin + part.begin; e < mine.begin + part.end; ++e) {
      const Edge edge = edge_at(e);
      made.push_back({static_cast<Index>(edge.target), static_cast<Index>(edge.source)});
      if (symmetrize) made.push_back({static_cast<Index>(edge.source), static_cast<Index>(edge.target)});
    }
    const auto counts = group_stably(
        made, comm.size(), [&](const Entry& entry) { return even_owner(n, comm.size(), entry.row); });
    const auto got = comm.all_to_all_v(std::span<const Entry>(made), counts, "generate");
    for (const auto& entry : got.data) {
      received.targets.push_back(entry.row);
      received.sources.push_back(entry.column);
    }
  }
  return received;
}

}  // namespace espalier
