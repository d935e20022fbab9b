// Edges of all relations of a folder with types as entries of the wide matrix (schema.hpp): a list
// of (column, row), relation after relation, each in the order of its file, then the inverses of
// all.
//
//     edges.begin(r); folder.read_edges(r, edges); edges.end(drop_self_loops);     for each triplet
//     edges.add_inverses();
//     build_rows(edges.list(), ...)
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "espalier/base/error.hpp"
#include "espalier/graph/edge_list.hpp"
#include "typed_folder.hpp"

namespace espalier {

template <class Index>
class WideEdges : public EdgeSink {
 public:
  WideEdges(const Schema& schema, int triplets) : schema_(schema), given_(triplets), dropped_(triplets) {}

  void reserve(std::int64_t edges) {
    list_.sources.reserve(edges);
    list_.targets.reserve(edges);
  }
  void begin(int relation) {
    relation_ = relation;
    first_.push_back(std::ssize(list_.sources));
    column_ = schema_.begin(relation);
    row_ = schema_.types()[schema_.relations()[relation].target].begin;
  }
  void add_heads(std::span<const std::int64_t> ids) override {
    for (const auto id : ids) list_.sources.push_back(static_cast<Index>(column_ + id));
  }
  void add_tails(std::span<const std::int64_t> ids) override {
    for (const auto id : ids) list_.targets.push_back(static_cast<Index>(row_ + id));
  }
  void end(bool drop_self_loops) {
    ESPALIER_CHECK(list_.sources.size() == list_.targets.size(), "{} heads", list_.sources.size());
    given_[relation_] = std::ssize(list_.sources) - first_.back();
    const auto& of = schema_.relations()[relation_];
    if (drop_self_loops && of.source == of.target) drop_loops();
    given_total_ = std::ssize(list_.sources);
  }
  void add_inverses();
  EdgeList<Index>& list() { return list_; }

  std::int64_t given(int relation) const { return given_[relation]; }
  std::int64_t dropped(int relation) const { return std::ssize(dropped_[relation]); }
  /// Which edges of the file they were, ascending.
  const std::vector<std::int64_t>& dropped_edges(int relation) const { return dropped_[relation]; }
  /// Of a place in the list, an inverse's too: the place of its edge among those of its file that
  /// were not dropped.
  std::int64_t place_in_relation(std::int64_t place) const {
    if (place >= given_total_) place -= given_total_;
    return place - *std::prev(std::upper_bound(first_.begin(), first_.end(), place));
  }
  // Of a place in the list: its relation, and which edge of the file it was.
  std::pair<int, std::int64_t> origin(std::int64_t place) const {
    const auto after = std::upper_bound(first_.begin(), first_.end(), place);
    const auto relation = static_cast<int>(after - first_.begin()) - 1;
    auto edge = place - first_[relation];
    for (const auto before : dropped_[relation]) edge += before <= edge;
    return {relation, edge};
  }

 private:
  void drop_loops();

  const Schema& schema_;
  EdgeList<Index> list_;
  int relation_ = 0;
  std::int64_t column_ = 0, row_ = 0;               // of the relation's first head and tail
  std::vector<std::int64_t> first_;                 // [relations] its first place in the list
  std::vector<std::int64_t> given_;                 // [relations]
  std::int64_t given_total_ = 0;                    // in the list before the inverses
  std::vector<std::vector<std::int64_t>> dropped_;  // [relations] which edges of the file
};

template <class Index>
void WideEdges<Index>::drop_loops() {
  auto& [sources, targets, weights] = list_;
  const auto first = first_.back();
  auto kept = first;
  for (auto e = first; e < std::ssize(sources); ++e) {
    if (sources[e] - column_ == targets[e] - row_) {
      dropped_[relation_].push_back(e - first);
      continue;
    }
    sources[kept] = sources[e];
    targets[kept++] = targets[e];
  }
  sources.resize(kept);
  targets.resize(kept);
}

template <class Index>
void WideEdges<Index>::add_inverses() {
  auto& [sources, targets, weights] = list_;
  const auto given = std::ssize(sources);
  for (int r = 0; r < std::ssize(first_); ++r) {
    const auto& relation = schema_.relations()[r];
    const auto& head = schema_.types()[relation.source];
    const auto end = r + 1 < std::ssize(first_) ? first_[r + 1] : given;
    const auto row_shift = head.begin - schema_.begin(r);
    const auto column_shift = schema_.begin(relation.inverse) - schema_.types()[relation.target].begin;
    for (auto e = first_[r]; e < end; ++e) {
      const auto column = targets[e] + column_shift, row = sources[e] + row_shift;
      sources.push_back(static_cast<Index>(column));
      targets.push_back(static_cast<Index>(row));
    }
  }
}

}  // namespace espalier
