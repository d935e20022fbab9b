// The vertices of a graph that is cleaned: which are connected, which stay, and their numbers.
#include "espalier/graph/rewrite_graph.hpp"

#include <algorithm>
#include <compare>
#include <limits>
#include <numeric>
#include <optional>

#include "copy_contents.hpp"
#include "espalier/base/group_stably.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/graph/file_stream.hpp"
#include "espalier/graph/id_route.hpp"
#include "fetch_rows.hpp"

namespace espalier {

// ---- components ----

namespace {

constexpr const char* kComponents = "components";

template <class Index>
class Components {
 public:
  Components(const Communicator& comm, const Csr<Index>& rows)
      : comm_(comm), rows_(rows), range_(even_range(rows.columns, comm.size(), comm.rank())) {
    const auto neighbours = distinct_ids(rows.indices);
    places_.reserve(rows.indices.size());
    for (const auto column : rows.indices)
      places_.push_back(static_cast<Index>(place_in(neighbours, column)));
    to_neighbours_ = IdRoute(comm, rows.columns, neighbours, kComponents);
    of_neighbours_.resize(neighbours.size());
    for (auto v = range_.begin; v < range_.end; ++v) parent_.push_back(v);
    grandparent_ = parent_;
  }

  Buffer<std::int64_t> find() && {
    for (bool changed = true; changed;) {
      const auto least = least_of_neighbours();
      hook(least);
      for (std::size_t v = 0; v < parent_.size(); ++v)
        parent_[v] = std::min({parent_[v], least[v], grandparent_[v]});
      changed = find_grandparents();
    }
    return std::move(parent_);
  }

 private:
  // Of each of my vertices the least grandparent of those that it has an edge with.
  Buffer<std::int64_t> least_of_neighbours() {
    to_neighbours_.pull(comm_, grandparent_.data(), of_neighbours_.data(), kComponents);
    Buffer<std::int64_t> least(parent_.size(), std::numeric_limits<std::int64_t>::max());
    Buffer<std::int64_t> back(of_neighbours_.size(), std::numeric_limits<std::int64_t>::max());
    for (std::int64_t v = 0; v < rows_.rows; ++v)
      for (auto e = rows_.row_begin(v); e < rows_.row_end(v); ++e) {
        least[v] = std::min(least[v], of_neighbours_[places_[e]]);
        back[places_[e]] = std::min(back[places_[e]], grandparent_[v]);
      }
    const auto received = to_neighbours_.push(comm_, back.data(), kComponents);
    const auto places = to_neighbours_.places();
    for (std::size_t k = 0; k < received.size(); ++k)
      least[places[k]] = std::min(least[places[k]], received[k]);
    return least;
  }

  // The parents' parents become the least of what their children know.
  void hook(const Buffer<std::int64_t>& least) {
    const auto parents = distinct_ids(parent_);
    const IdRoute to_parents(comm_, rows_.columns, parents, kComponents);
    Buffer<std::int64_t> known(parents.size(), std::numeric_limits<std::int64_t>::max());
    for (std::size_t v = 0; v < parent_.size(); ++v) {
      auto& of = known[place_in(parents, parent_[v])];
      of = std::min(of, least[v]);
    }
    const auto received = to_parents.push(comm_, known.data(), kComponents);
    const auto places = to_parents.places();
    for (std::size_t k = 0; k < received.size(); ++k)
      parent_[places[k]] = std::min(parent_[places[k]], received[k]);
  }

  // Has one changed on any rank?
  bool find_grandparents() {
    const auto parents = distinct_ids(parent_);
    const IdRoute to_parents(comm_, rows_.columns, parents, kComponents);
    Buffer<std::int64_t> of_parents(parents.size());
    to_parents.pull(comm_, parent_.data(), of_parents.data(), kComponents);
    std::int64_t changed = 0;
    for (std::size_t v = 0; v < parent_.size(); ++v) {
      const auto grandparent = of_parents[place_in(parents, parent_[v])];
      changed |= grandparent != grandparent_[v];
      grandparent_[v] = grandparent;
    }
    return comm_.all_reduce(changed, Reduction::kMax, kComponents) != 0;
  }

  const Communicator& comm_;
  const Csr<Index>& rows_;
  RowRange range_;
  Buffer<Index> places_;                       // [entries] of each column among the neighbours
  IdRoute to_neighbours_;                      // the distinct columns
  Buffer<std::int64_t> of_neighbours_;         // [neighbours] their grandparents
  Buffer<std::int64_t> parent_, grandparent_;  // [mine]
};

}  // namespace

template <class Index>
Buffer<std::int64_t> connected_components(const Communicator& comm, const Csr<Index>& rows) {
  return Components<Index>(comm, rows).find();
}

template Buffer<std::int64_t> connected_components(const Communicator&, const Csr<std::int32_t>&);
template Buffer<std::int64_t> connected_components(const Communicator&, const Csr<std::int64_t>&);

// ---- numbers ----

static constexpr const char* kNumbering = "numbers of vertices";

RenumberedVertices::RenumberedVertices(const Communicator& comm, std::int64_t old_nodes,
                                       Buffer<std::int64_t> numbers)
    : comm_(comm), old_nodes_(old_nodes), numbers_(std::move(numbers)) {
  struct Pair {
    std::int64_t number, old;
  };
  const auto first = even_range(old_nodes, comm.size(), comm.rank()).begin;
  Buffer<Pair> pairs;
  for (std::int64_t k = 0; k < std::ssize(numbers_); ++k)
    if (numbers_[k] != kDropped) pairs.push_back({numbers_[k], first + k});
  nodes_ = comm.all_reduce(std::ssize(pairs), Reduction::kSum, kNumbering);
  const auto counts = group_stably(
      pairs, comm.size(), [&](const Pair& pair) { return even_owner(nodes_, comm.size(), pair.number); });
  const auto got = comm.all_to_all_v(std::span<const Pair>(pairs), counts, kNumbering).data;
  const auto mine = even_range(nodes_, comm.size(), comm.rank());
  old_.resize(mine.size());
  for (const auto& pair : got) old_[pair.number - mine.begin] = pair.old;
}

Buffer<std::int64_t> RenumberedVertices::numbers_of(std::span<const std::int64_t> old) const {
  const auto ids = distinct_ids(old);
  Buffer<std::int64_t> of_ids(ids.size());
  IdRoute(comm_, old_nodes_, ids, kNumbering).pull(comm_, numbers_.data(), of_ids.data(), kNumbering);
  Buffer<std::int64_t> numbers(old.size());
  std::ranges::transform(old, numbers.begin(), [&](std::int64_t id) { return of_ids[place_in(ids, id)]; });
  return numbers;
}

namespace {

// ---- components ----

// Of each of my vertices how large its component is.
class ComponentSizes {
 public:
  ComponentSizes(const Communicator& comm, std::int64_t nodes, std::span<const std::int64_t> of_vertices)
      : sizes_(of_vertices.size()) {
    const auto roots = distinct_ids(of_vertices);
    const IdRoute to_roots(comm, nodes, roots, kNumbering);
    Buffer<std::int64_t> counts(roots.size(), 0);
    for (const auto root : of_vertices) ++counts[place_in(roots, root)];
    const auto mine = even_range(nodes, comm.size(), comm.rank());
    Buffer<std::int64_t> of_roots(mine.size(), 0);
    const auto received = to_roots.push(comm, counts.data(), kNumbering);
    for (std::size_t k = 0; k < received.size(); ++k) of_roots[to_roots.places()[k]] += received[k];
    to_roots.pull(comm, of_roots.data(), counts.data(), kNumbering);
    for (std::size_t v = 0; v < of_vertices.size(); ++v) sizes_[v] = counts[place_in(roots, of_vertices[v])];
    count_ =
        comm.all_reduce(std::ssize(of_roots) - std::ranges::count(of_roots, 0), Reduction::kSum, kNumbering);
    const auto most =
        comm.all_reduce(of_roots.empty() ? 0 : std::ranges::max(of_roots), Reduction::kMax, kNumbering);
    const auto first = std::ranges::find(of_roots, most) - of_roots.begin();
    largest_ = comm.all_reduce(first < mine.size() ? mine.begin + first : nodes, Reduction::kMin, kNumbering);
  }

  std::int64_t of(std::int64_t v) const { return sizes_[v]; }
  std::int64_t count() const { return count_; }
  /// The least vertex of the largest.
  std::int64_t largest() const { return largest_; }

 private:
  Buffer<std::int64_t> sizes_;  // [mine]
  std::int64_t count_ = 0, largest_ = 0;
};

// ---- sorting ----

// Vertices ascend by it.
struct Key {
  std::uint64_t first, second;
  std::int64_t id;

  auto operator<=>(const Key&) const = default;
};

// Collective. The places of my keys among those of all ranks, by regular sampling (Shi, Schaeffer
// 1992): each rank's samples choose the bounds, ranks sort what lies between two of them.
Buffer<std::int64_t> places_among_all(const Communicator& comm, const Buffer<Key>& mine) {
  struct Sent {
    Key key;
    std::int64_t place;  // at the rank that has it
  };
  auto sorted = mine;
  std::ranges::sort(sorted);
  Buffer<Key> samples;
  for (int k = 1; k < comm.size() && !sorted.empty(); ++k)
    samples.push_back(sorted[std::ssize(sorted) * k / comm.size()]);
  auto of_all = comm.all_gather_v(std::span<const Key>(samples), kNumbering);
  std::ranges::sort(of_all);
  Buffer<Key> bounds;
  for (int k = 1; k < comm.size() && !of_all.empty(); ++k)
    bounds.push_back(of_all[std::ssize(of_all) * k / comm.size()]);
  Buffer<Sent> sent;
  for (std::int64_t k = 0; k < std::ssize(mine); ++k) sent.push_back({mine[k], k});
  const auto counts = group_stably(sent, comm.size(), [&](const Sent& of) {
    return std::ranges::upper_bound(bounds, of.key) - bounds.begin();
  });
  const auto got = comm.all_to_all_v(std::span<const Sent>(sent), counts, kNumbering);
  Buffer<std::int64_t> order(got.data.size()), places(got.data.size()), back(mine.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::ranges::sort(order, {}, [&](std::int64_t k) { return got.data[k].key; });
  const auto first = stretches(comm, std::ssize(order))[comm.rank()];
  for (std::int64_t k = 0; k < std::ssize(order); ++k) places[order[k]] = first + k;
  comm.all_to_all_v(places.data(), got.counts, back.data(), counts, kNumbering);
  Buffer<std::int64_t> found(mine.size());
  for (std::size_t k = 0; k < sent.size(); ++k) found[sent[k].place] = back[k];
  return found;
}

std::uint64_t descending(std::int64_t count) {
  return ~static_cast<std::uint64_t>(count);
}

}  // namespace

RenumberedVertices number_vertices(const Communicator& comm, std::int64_t nodes, const VertexFacts& facts,
                                   const CleanOptions& options, std::int64_t& components) {
  const auto mine = even_range(nodes, comm.size(), comm.rank());
  std::optional<ComponentSizes> sizes;
  if (options.largest_component || options.order == RowOrder::kComponent) {
    sizes.emplace(comm, nodes, facts.components);
    components = sizes->count();
  }
  const auto key_of = [&](std::int64_t k) {
    const auto v = mine.begin + k;
    const auto cluster = [&] { return std::uint64_t{options.clusters[v]}; };
    switch (options.order) {
      case RowOrder::kDegree:
        return Key{descending(facts.degrees[k]), 0, v};
      case RowOrder::kCluster:
        return Key{cluster(), 0, v};
      case RowOrder::kClusterDegree:
        return Key{cluster(), descending(facts.degrees[k]), v};
      case RowOrder::kRandom: {
        const FileStream stream{
            .seed = options.seed, .purpose = FilePurpose::kRelabel, .row = static_cast<std::uint64_t>(v)};
        return Key{file_word(stream, 0), 0, v};
      }
      case RowOrder::kComponent:
        return Key{descending(sizes->of(k)), static_cast<std::uint64_t>(facts.components[k]), v};
      case RowOrder::kFile:
        break;
    }
    return Key{0, 0, v};
  };
  Buffer<Key> keys;
  for (std::int64_t k = 0; k < mine.size(); ++k)
    if (!options.largest_component || facts.components[k] == sizes->largest()) keys.push_back(key_of(k));
  const auto places = places_among_all(comm, keys);
  Buffer<std::int64_t> numbers(mine.size(), kDropped);
  for (std::size_t k = 0; k < keys.size(); ++k) numbers[keys[k].id - mine.begin] = places[k];
  return RenumberedVertices(comm, nodes, std::move(numbers));
}

}  // namespace espalier
