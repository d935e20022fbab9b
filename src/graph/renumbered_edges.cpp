#include "renumbered_edges.hpp"

#include <algorithm>
#include <vector>

#include "espalier/base/error.hpp"
#include "espalier/base/host_device.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kNoNode = -1;

// A place in a table of any size.
std::size_t place_of(std::int64_t id, std::size_t places) {
  return static_cast<std::size_t>(
      static_cast<unsigned __int128>(mix(static_cast<std::uint64_t>(id))) * places >> 64);
}

// The place of an id in a table: where it is, else the free one where it would be.
template <class Entry, class IdOf>
std::size_t find_place(const Buffer<Entry>& table, std::int64_t id, IdOf id_of) {
  auto place = place_of(id, table.size());
  const auto at = [&] { return std::invoke(id_of, table[place]); };
  while (at() != kNoNode && at() != id)
    if (++place == table.size()) place = 0;
  return place;
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
    auto& entry = table_[find_place(table_, id, std::identity())];
    if (entry == id) return;
    entry = id;
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
    for (const auto id : table_)
      if (id != kNoNode) larger[find_place(larger, id, std::identity())] = id;
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
  for (std::int64_t number = 0; number < std::ssize(ids_); ++number)
    table_[find_place(table_, ids_[number], &Entry::id)] = {ids_[number], number};
}

std::int64_t VertexNumbers::number_of(std::int64_t id) const {
  if (id < 0) return kNoNode;
  return table_[find_place(table_, id, &Entry::id)].number;
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
  edges_->read([&](const EdgePiece& piece) {
    renumber(piece.sources, sources);
    renumber(piece.targets, targets);
    use({sources, targets, piece.weights, piece.vanished});
  });
}

}  // namespace espalier
