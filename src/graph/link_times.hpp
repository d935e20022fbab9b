// When links were, of a split by time: the time of a link is the latest of the entries that stand
// for it, its own, that of its reverse where every edge of the relation has one, and those of the
// inverse relation where these have times. So it does not depend on how vertices are numbered, and
// no entry of a link that stays is later than the link.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "edge_tables.hpp"
#include "exchange_entries.hpp"
#include "link_choice.hpp"

namespace espalier {

/// Collective. Of each entry of the rows, this rank's even range, the time of the link that it
/// stands for; of others anything. Chosen relations have times.
template <class Index>
Buffer<std::int64_t> read_link_times(const Communicator& comm, const EdgeTables<Index>& tables,
                                     const RowRange& range, const PlacedRows<Index>& placed,
                                     const LinkChoice& choice) {
  constexpr const char* kLabel = "times of links";
  const auto& schema = choice.schema();
  const auto& rows = placed.rows;
  Buffer<std::int64_t> times(rows.entries(), std::numeric_limits<std::int64_t>::min());
  for (int r = 0; r < std::ssize(schema.relations()); ++r) {
    const int inverse = schema.relations()[r].inverse;
    const bool speaks_of_links = choice.place(r) >= 0 || (inverse >= 0 && choice.place(inverse) >= 0);
    if (!speaks_of_links || !tables.has_times(r)) continue;
    const auto places = entries_of(schema, rows, r);
    const auto of = tables.template rows<std::int64_t>(Column::kEdgeTime, r, placed, places).data;
    for (std::size_t k = 0; k < places.size(); ++k) times[places[k]] = of[k];
  }
  // To the entry of a link that is counted.
  struct Note {
    std::int64_t row, column, entry, time;
  };
  const auto from_others = [&](auto take) {
    exchange_entries<Note>(
        comm, schema.nodes(), rows, kLabel,
        [&](std::int64_t row, std::int64_t e, auto& sent) {
          const auto link = choice.link_of(range.begin + row, static_cast<std::int64_t>(rows.indices[e]));
          if (link.relation >= 0 && !link.is_first)
            sent.push_back({link.tail, schema.column(link.relation, link.head), e, times[e]});
        },
        take);
  };
  const auto time_of = [&](const Note& note) -> std::int64_t& {
    return times[place_of(rows, note.row - range.begin, note.column)];
  };
  from_others([&](const auto&, const auto&, const auto& got) {
    for (const Note& note : got.data) time_of(note) = std::max(time_of(note), note.time);
  });
  from_others([&](const auto& asked, const auto& counts, const auto& got) {
    Buffer<std::int64_t> said, answers;
    for (const Note& note : got.data) said.push_back(time_of(note));
    comm.all_to_all_v(std::span<const std::int64_t>(said), got.counts, counts, answers, kLabel);
    for (std::size_t k = 0; k < asked.size(); ++k) times[asked[k].entry] = answers[k];
  });
  return times;
}

}  // namespace espalier
