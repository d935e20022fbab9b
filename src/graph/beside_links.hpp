// Edges that are no links and stand between the ends of some: of relations that say the same as
// those of the links, which are left out with them.
#pragma once

#include <cstdint>
#include <vector>

#include "exchange_entries.hpp"
#include "link_choice.hpp"
#include "row_building.hpp"

namespace espalier {

/// Collective. Which of my entries, of these relations, are between the ends of a link that is left
/// out, in either direction. is_hidden(place): is my entry, of a chosen relation, one of such?
template <class Index, class IsHidden>
Buffer<std::int64_t> entries_beside(const Communicator& comm, const LinkChoice& choice, const RowRange& range,
                                    const Csr<Index>& rows, const std::vector<std::uint8_t>& relations,
                                    IsHidden is_hidden) {
  constexpr const char* kLabel = "edges beside links";
  const auto& schema = choice.schema();
  // Is there a link in this row and column?
  struct Request {
    std::int64_t row, column, asker;
  };
  Buffer<std::int64_t> found;
  exchange_entries<Request>(
      comm, schema.nodes(), rows, kLabel,
      [&](std::int64_t row, std::int64_t e, auto& asked) {
        const int r = schema.relation_of(rows.indices[e]);
        const auto v = range.begin + row, u = schema.vertex_of(rows.indices[e]);
        if (!relations[r] || u == v) return;
        for (const int link : choice.chosen()) {
          if (joins_same(schema, link, r)) asked.push_back({v, schema.column(link, u), e});
          if (joins_back(schema, link, r)) asked.push_back({u, schema.column(link, v), e});
        }
      },
      [&](const auto& asked, const auto& counts, const auto& got) {
        Buffer<std::uint8_t> said, answers;
        for (const Request& request : got.data) {
          const auto place = place_of(rows, request.row - range.begin, request.column);
          said.push_back(place >= 0 && is_hidden(place));
        }
        comm.all_to_all_v(std::span<const std::uint8_t>(said), got.counts, counts, answers, kLabel);
        for (std::size_t k = 0; k < asked.size(); ++k)
          if (answers[k] != 0) found.push_back(asked[k].asker);
      });
  std::ranges::sort(found);
  const auto [first, last] = std::ranges::unique(found);
  found.erase(first, last);
  return found;
}

}  // namespace espalier
