#include "renumbered_edges.hpp"

#include <algorithm>
#include <vector>

#include "espalier/base/error.hpp"
#include "espalier/base/mix.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kNoNode = -1;

// A place in a table of any size.
std::size_t place_of(std::int64_t id, std::size_t places) {
  return static_cast<std::size_t>(
      static_cast<unsigned __int128>(mix(static_cast<std::uint64_t>(id))) * places >> 64);
}

std::size_t next_place(std::size_t place, std::size_t places) {
  return place + 1 == places ? 0 : place + 1;
}

// So many places for so many ids.
std::size_t roomy(std::size_t ids) {
  return ids + ids / 2 + ids / 6 + 16;
}

// Which ids there are.
class IdSet {
 public:
  IdSet() : table_(1 << 12, kNoNode) {}
  void add(std::int64_t id) {
    auto place = place_of(id, table_.size());
    while (table_[place] != kNoNode && table_[place] != id) place = next_place(place, table_.size());
    if (table_[place] == id) return;
    table_[place] = id;
    if (++count_ * 5 > table_.size() * 4) grow();
  }
  // Ascending.
  Buffer<std::int64_t> sorted() && {
    std::erase(table_, kNoNode);
    table_.shrink_to_fit();
    std::ranges::sort(table_);
    return std::move(table_);
  }

 private:
  void grow() {
    Buffer<std::int64_t> larger(table_.size() + table_.size() / 2, kNoNode);
    for (const auto id : table_) {
      if (id == kNoNode) continue;
      auto place = place_of(id, larger.size());
      while (larger[place] != kNoNode) place = next_place(place, larger.size());
      larger[place] = id;
    }
    table_ = std::move(larger);
  }

  Buffer<std::int64_t> table_;
  std::size_t count_ = 0;
};

}  // namespace

VertexNumbers::VertexNumbers(const EdgeSource& edges) {
  IdSet set;
  edges.read([&](const EdgePiece& piece) {
    for (std::size_t k = 0; k < piece.sources.size(); ++k) {
      set.add(piece.sources[k]);
      set.add(piece.targets[k]);
    }
  });
  ids_ = std::move(set).sorted();
  table_.assign(roomy(ids_.size()), {kNoNode, kNoNode});
  for (std::int64_t number = 0; number < std::ssize(ids_); ++number) {
    auto place = place_of(ids_[number], table_.size());
    while (table_[place].id != kNoNode) place = next_place(place, table_.size());
    table_[place] = {ids_[number], number};
  }
}

std::int64_t VertexNumbers::number_of(std::int64_t id) const {
  if (id < 0) return kNoNode;
  auto place = place_of(id, table_.size());
  while (table_[place].id != kNoNode && table_[place].id != id) place = next_place(place, table_.size());
  return table_[place].number;
}

void RenumberedEdges::read(const std::function<void(const EdgePiece&)>& use) const {
  std::vector<std::int64_t> sources, targets;
  const auto renumber = [&](std::span<const std::int64_t> ids, std::vector<std::int64_t>& numbers) {
    numbers.clear();
    for (const auto id : ids) {
      numbers.push_back(numbers_.number_of(id));
      if (numbers.back() < 0) input_error("{}: changed while it was read; import it again", name());
    }
  };
  edges_.read([&](const EdgePiece& piece) {
    renumber(piece.sources, sources);
    renumber(piece.targets, targets);
    use({sources, targets, piece.weights});
  });
}

}  // namespace espalier
