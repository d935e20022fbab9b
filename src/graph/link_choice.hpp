// Which split the link of an edge is in (split_links.hpp has the law).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "espalier/base/philox.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/graph/split_links.hpp"
#include "reverse_entries.hpp"

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
    RandomStream stream{seed_, Purpose::kSplitLinks};
    stream.batch = static_cast<std::uint64_t>(link.head);
    stream.layer = static_cast<std::uint64_t>(link.relation);
    stream.row = static_cast<std::uint64_t>(link.tail);
    return random64(stream, 0);
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

}  // namespace espalier
