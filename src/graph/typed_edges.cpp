#include "typed_edges.hpp"

#include <algorithm>

#include "edge_pieces.hpp"

namespace espalier {

TypedEdges::TypedEdges(const TypedFolder& folder, const Schema& schema, int triplets, bool drop_self_loops)
    : folder_(folder), schema_(schema), drop_self_loops_(drop_self_loops), read_(triplets) {}

void TypedEdges::read(const std::function<void(const EdgePiece&)>& use) const {
  std::int64_t begin = 0;
  for (int r = 0; r < std::ssize(read_); ++r) begin = read_relation(r, begin, use);
}

// Returns where the entries of the next begin.
std::int64_t TypedEdges::read_relation(int relation, std::int64_t begin,
                                       const std::function<void(const EdgePiece&)>& use) const {
  const auto& of = schema_.relations()[relation];
  const auto head_row = schema_.types()[of.source].begin, tail_row = schema_.types()[of.target].begin;
  const bool drops = drop_self_loops_ && of.source == of.target;
  Read read{begin, 0, {}};
  EdgePieces pieces(false, use);
  folder_.read_edges(relation, [&](const EdgePiece& piece) {
    for (std::size_t k = 0; k < piece.sources.size(); ++k) {
      const auto head = head_row + piece.sources[k], tail = tail_row + piece.targets[k];
      const auto edge = read.given++;
      if (drops && head == tail) {
        read.dropped.push_back(edge);
        continue;
      }
      pieces.add(schema_.column(relation, head), tail, 1);
      if (of.inverse >= 0) pieces.add(schema_.column(of.inverse, tail), head, 1);
    }
  });
  pieces.finish();
  read_[relation] = std::move(read);
  return begin + ways(relation) * (given(relation) - dropped(relation));
}

std::pair<int, std::int64_t> TypedEdges::origin(std::int64_t entry) const {
  const auto after = std::ranges::upper_bound(read_, entry, {}, &Read::begin);
  const auto relation = static_cast<int>(after - read_.begin()) - 1;
  const auto edge = (entry - read_[relation].begin) / ways(relation);
  // How many were dropped before it: the k-th of them has dropped[k] - k edges before
  // that were not.
  const auto& dropped = read_[relation].dropped;
  std::int64_t before = 0, end = std::ssize(dropped);
  while (before < end) {
    const auto middle = before + (end - before) / 2;
    if (dropped[middle] - middle <= edge)
      before = middle + 1;
    else
      end = middle;
  }
  return {relation, edge + before};
}

std::string TypedEdges::place(std::int64_t entry) const {
  const auto [relation, edge] = origin(entry);
  return folder_.edge_place(relation, edge);
}

Buffer<std::int64_t> TypedEdges::of_relation(int relation, const Buffer<std::int64_t>& entries,
                                             std::int64_t none) const {
  Buffer<std::int64_t> found;
  const auto& of = read_[relation];
  auto dropped = of.dropped.begin();
  auto entry = of.begin;
  for (std::int64_t edge = 0; edge < of.given; ++edge) {
    if (dropped != of.dropped.end() && *dropped == edge) {
      ++dropped;
      found.push_back(none);
      continue;
    }
    found.push_back(entries[entry]);
    entry += ways(relation);
  }
  return found;
}

}  // namespace espalier
