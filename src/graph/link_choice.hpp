// Which split the link of an edge is in (rewrite_graph.hpp has the law).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "edge_tables.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/graph/file_stream.hpp"
#include "espalier/graph/rewrite_graph.hpp"
#include "fetch_rows.hpp"
#include "reverse_entries.hpp"
#include "row_building.hpp"

namespace espalier {

/// An entry of A as a link.
struct LinkOfEntry {
  std::int32_t relation = -1;  ///< of the graph; -1: the entry is no link
  std::int64_t head = 0, tail = 0;
  bool is_first = false;  ///< of the entries that stand for the link it is the one that is counted
};

class LinkChoice {
 public:
  /// `chosen`: the relations, ascending.
  LinkChoice(const Schema& schema, std::vector<int> chosen, const Reverses& reverses, std::uint64_t seed)
      : schema_(schema),
        chosen_(std::move(chosen)),
        place_(schema.relations().size(), -1),
        symmetric_(reverses.symmetric),
        seed_(seed) {
    for (std::size_t k = 0; k < chosen_.size(); ++k) place_[chosen_[k]] = static_cast<int>(k);
  }

  const Schema& schema() const { return schema_; }
  const std::vector<int>& chosen() const { return chosen_; }
  /// Of a relation of the graph its place among those that were chosen; -1: it was not.
  int place(int relation) const { return place_[relation]; }

  /// What the entry in row v and this column stands for. Of a relation whose every edge has its
  /// reverse the ends ascend.
  LinkOfEntry link_of(std::int64_t v, std::int64_t column) const {
    const int r = schema_.relation_of(column), inverse = schema_.relations()[r].inverse;
    const auto u = schema_.vertex_of(column);
    if (u == v) return {};
    if (place_[r] >= 0) return symmetric_[r] ? ascending(r, u, v, u < v) : LinkOfEntry{r, u, v, true};
    if (inverse < 0 || place_[inverse] < 0) return {};
    return symmetric_[inverse] ? ascending(inverse, v, u, false) : LinkOfEntry{inverse, v, u, false};
  }

  std::int64_t word(const LinkOfEntry& link) const {
    return static_cast<std::int64_t>(random_bits(link) >> 1);
  }
  /// Of a pair the bit beside its word: is the larger vertex the head?
  bool descends(const LinkOfEntry& pair) const { return (random_bits(pair) & 1) != 0; }

  /// Of a link of the relation with this word.
  Split split(int relation, std::int64_t word) const {
    const auto& [test, valid] = bounds_[place_[relation]];
    return word < test ? Split::kTest : word < valid ? Split::kValid : Split::kTrain;
  }

  /// Collective. From the words of this rank's links that are counted, for each chosen relation:
  /// those drawn, or others, of which the smallest are in test. What is equal stays together: a
  /// border within it goes to the nearer of its ends, to the one with more in test or valid where
  /// both are as near.
  void set_bounds(const Communicator& comm, std::vector<std::vector<std::int64_t>> words,
                  const LinkShares& shares);

 private:
  std::uint64_t random_bits(const LinkOfEntry& link) const {
    FileStream stream{seed_, FilePurpose::kSplitLinks};
    stream.batch = static_cast<std::uint64_t>(link.head);
    stream.layer = static_cast<std::uint64_t>(link.relation);
    stream.row = static_cast<std::uint64_t>(link.tail);
    return file_word(stream, 0);
  }
  static LinkOfEntry ascending(int relation, std::int64_t a, std::int64_t b, bool is_first) {
    return {relation, std::min(a, b), std::max(a, b), is_first};
  }

  const Schema& schema_;
  std::vector<int> chosen_, place_;
  std::vector<std::uint8_t> symmetric_;
  std::uint64_t seed_;
  std::vector<std::array<std::int64_t, 2>> bounds_;  // [chosen] of the words in test, and in valid
};

/// Do two relations join the same types, in the same direction, or in the other?
inline bool joins_same(const Schema& schema, int one, int other) {
  const auto &a = schema.relations()[one], &b = schema.relations()[other];
  return a.source == b.source && a.target == b.target;
}
inline bool joins_back(const Schema& schema, int one, int other) {
  const auto &a = schema.relations()[one], &b = schema.relations()[other];
  return a.source == b.target && a.target == b.source;
}

/// The schema of the file, with the inverses that options declare. Throws UserError as
/// rewrite_graph() does, as the next ones.
Schema declare_inverses(const GraphFile& file, const LinkSplitOptions& options);

/// [relations] is it one of options.also, or the inverse of one?
std::vector<std::uint8_t> relations_beside(const GraphFile& file, const Schema& schema,
                                           const LinkSplitOptions& options);

/// The relations that are asked for, ascending: those whose edges are links.
std::vector<int> relations_of_links(const GraphFile& file, const Schema& schema,
                                    const LinkSplitOptions& options, const std::vector<std::uint8_t>& beside,
                                    const std::vector<std::int64_t>& entries);

// When links were, of a split by time: the time of a link is the latest of the entries that stand
// for it, its own, that of its reverse where every edge of the relation has one, and those of the
// inverse relation where these have times. So it does not depend on how vertices are numbered, and
// no entry of a link that stays is later than the link.

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

// Edges that are no links and stand between the ends of some: of relations that say the same as
// those of the links, which are left out with them.

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
