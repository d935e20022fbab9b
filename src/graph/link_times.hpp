// When links were: the time of an entry is its link's where it is the one that is counted, and
// others that stand for the link, its reverse or of an inverse relation, ask for it.
#pragma once

#include <algorithm>

#include "copy_contents.hpp"
#include "espalier/base/group_stably.hpp"
#include "espalier/graph/row_range.hpp"
#include "link_choice.hpp"

namespace espalier {

/// Collective. [entries] of this rank's even range of rows, the times of their links; of what is no
/// link anything. A few million ask at a time. The chosen relations have times.
template <class Index>
Buffer<std::int64_t> times_of_links(const Communicator& comm, const GraphFile& file, const LinkChoice& choice,
                                    const RowRange& range, const Csr<Index>& rows) {
  constexpr std::int64_t kAtOnce = std::int64_t{1} << 20;
  constexpr const char* kLabel = "times of links";
  const auto& schema = file.info().schema;
  Buffer<std::int64_t> times(rows.entries());
  for (const int r : choice.chosen()) {
    const auto places = entries_of(schema, rows, r);
    const auto mine = among_entries(comm, std::ssize(places));
    const auto of = file.read_edge_times(r, mine.begin, mine.end);
    for (std::size_t k = 0; k < places.size(); ++k) times[places[k]] = of[k];
  }
  struct Question {
    std::int64_t row, column, asker;
  };
  std::int64_t row = 0, at = 0;
  const auto rounds = comm.all_reduce(rows.entries() / kAtOnce + 1, Reduction::kMax, kLabel);
  for (std::int64_t round = 0; round < rounds; ++round) {
    std::vector<Question> asked;
    for (const auto end = std::min(at + kAtOnce, rows.entries()); at < end; ++at) {
      while (rows.row_end(row) <= at) ++row;
      const auto v = range.begin + row;
      const auto link = choice.link_of(v, static_cast<std::int64_t>(rows.indices[at]));
      if (link.relation >= 0 && !link.is_first)
        asked.push_back({schema.vertex_of(rows.indices[at]), schema.column(link.relation, v), at});
    }
    const auto counts = group_stably(asked, comm.size(), [&](const Question& q) {
      return even_owner(schema.nodes(), comm.size(), q.row);
    });
    const auto got = comm.all_to_all_v(std::span<const Question>(asked), counts, kLabel);
    Buffer<std::int64_t> said, answers;
    for (const auto& question : got.data) {
      const auto columns = rows.row_indices(question.row - range.begin);
      const auto found = std::ranges::lower_bound(columns, static_cast<Index>(question.column));
      said.push_back(times[rows.row_begin(question.row - range.begin) + (found - columns.begin())]);
    }
    comm.all_to_all_v(std::span<const std::int64_t>(said), got.counts, counts, answers, kLabel);
    for (std::size_t k = 0; k < asked.size(); ++k) times[asked[k].asker] = answers[k];
  }
  return times;
}

}  // namespace espalier
