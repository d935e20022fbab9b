#include "espalier/graph/rewrite_graph.hpp"

#include <algorithm>
#include <limits>

#include "espalier/base/row_range.hpp"
#include "espalier/graph/id_route.hpp"

namespace espalier {

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

}  // namespace espalier
