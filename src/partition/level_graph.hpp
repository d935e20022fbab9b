// One level of the multilevel method: a symmetric graph without loops whose edges and vertices have
// integer weights, its rows spread over the ranks by even ranges of the ids. A rank also knows the
// ids of the neighbours that others own, its ghosts.
//
// In the rows a neighbour is a *place*: v - mine.begin of an own vertex, own() + k of ghost k. So
// what a round of work reads of a neighbour, a label or a cluster, is one array over the places.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/base/id_map.hpp"
#include "espalier/graph/id_route.hpp"
#include "espalier/partition/order.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// Weights of entries: all 1, or 4 bytes each where all of a graph's edges together weigh less than
/// 2^31, or 8.
class EdgeWeights {
 public:
  EdgeWeights() = default;
  explicit EdgeWeights(std::int64_t graph_weight)
      : form_(graph_weight < std::numeric_limits<std::int32_t>::max() ? Form::kNarrow : Form::kWide) {}

  void reserve(std::int64_t entries) {
    if (form_ == Form::kNarrow) narrow_.reserve(entries);
    if (form_ == Form::kWide) wide_.reserve(entries);
  }
  void push_back(std::int64_t weight) {
    if (form_ == Form::kNarrow) narrow_.push_back(static_cast<std::int32_t>(weight));
    if (form_ == Form::kWide) wide_.push_back(weight);
  }
  std::int64_t operator[](std::int64_t entry) const {
    return form_ == Form::kNarrow ? narrow_[entry] : form_ == Form::kOnes ? 1 : wide_[entry];
  }

 private:
  enum class Form { kOnes, kNarrow, kWide };
  Form form_ = Form::kOnes;
  Buffer<std::int32_t> narrow_;
  Buffer<std::int64_t> wide_;
};

struct LevelGraph {
  std::int64_t nodes = 0;
  RowRange mine;                          ///< even_range(nodes, ranks, rank)
  Buffer<std::int64_t> indptr;            ///< [own + 1]
  Buffer<std::int32_t> neighbours;        ///< [entries] places
  EdgeWeights weights;                    ///< [entries] of edges, > 0
  Buffer<ClusterWeights> vertex_weights;  ///< [own]
  Buffer<std::int64_t> ghosts;            ///< ids, ascending
  IdRoute ghost_route;
  std::int64_t inside = 0;  ///< weight of the edges of all ranks that became loops, each twice

  std::int64_t own() const { return mine.size(); }
  std::int64_t places() const { return own() + static_cast<std::int64_t>(ghosts.size()); }
  std::int64_t id(std::int64_t place) const {
    return place < own() ? mine.begin + place : ghosts[place - own()];
  }

  /// Collective. The values of ghosts, from their owners; values: [places], those of own vertices
  /// are there.
  template <class T>
  void fill_ghosts(const Communicator& comm, Buffer<T>& values, std::string_view label) const {
    ghost_route.pull(comm, values.data(), values.data() + own(), label);
  }
};

/// Makes a level row by row, without ever holding its ids in full width.
class LevelBuilder {
 public:
  LevelBuilder(const Communicator& comm, std::int64_t nodes, EdgeWeights weights,
               std::int64_t entries_expected);
  /// Entries of the row that is open; `column` is an id.
  void add(std::int64_t column, std::int64_t weight) {
    const bool here = column >= graph_.mine.begin && column < graph_.mine.end;
    graph_.neighbours.push_back(here ? static_cast<std::int32_t>(column - graph_.mine.begin) : ghost(column));
    graph_.weights.push_back(weight);
  }
  void end_row() { graph_.indptr.push_back(static_cast<std::int64_t>(graph_.neighbours.size())); }
  /// Collective. When all of my rows have ended. UserError(kMemory) on every rank when one has 2^31
  /// places.
  LevelGraph finish(const Communicator& comm, Buffer<ClusterWeights> vertex_weights);

 private:
  std::int32_t ghost(std::int64_t id);
  void sort_ghosts();

  LevelGraph graph_;  // ghosts in the order in which they came
  IdMap ghost_number_;
  std::int64_t ghost_room_;
};

/// Those of some ids, ascending, each once.
inline Buffer<std::int64_t> distinct(const Buffer<std::int64_t>& ids) {
  Buffer<std::int64_t> found(ids.begin(), ids.end());
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

/// Where each of `ids` stands in a list that has them all, each once.
inline Buffer<std::int32_t> numbers_in(const Buffer<std::int64_t>& list, const Buffer<std::int64_t>& ids) {
  IdMap seen(std::ssize(list));
  for (const auto id : list) seen.insert(id);
  Buffer<std::int32_t> numbers(ids.size());
  std::ranges::transform(ids, numbers.begin(),
                         [&](std::int64_t id) { return static_cast<std::int32_t>(seen.find(id)); });
  return numbers;
}

/// What stands beside each of `ids` in a list that is ascending.
template <class T>
Buffer<T> look_up(const Buffer<std::int64_t>& ids, const Buffer<std::int64_t>& list,
                  const Buffer<T>& beside) {
  Buffer<T> found(ids.size());
  for (std::size_t k = 0; k < ids.size(); ++k)
    found[k] = beside[std::lower_bound(list.begin(), list.end(), ids[k]) - list.begin()];
  return found;
}

/// Collective. The level whose rows are `rows` [mine, nodes]: global ids, ascending, without loops,
/// symmetric over all ranks, edges of weight 1. UserError as LevelBuilder.
LevelGraph make_level_graph(const Communicator& comm, Csr<std::int64_t> rows,
                            Buffer<ClusterWeights> vertex_weights);

/// Collective. The sum over all vertices.
ClusterWeights total_weights(const Communicator& comm, const LevelGraph& graph);

/// Collective. The weight of all entries: every edge twice. With graph.inside it is the same on
/// all levels.
std::int64_t total_edge_weight(const Communicator& comm, const LevelGraph& graph);

/// Is load + more within the limit, in every kind that there is more of?
inline bool fits(const ClusterWeights& load, const ClusterWeights& more, const ClusterWeights& limit) {
  for (std::size_t kind = 0; kind < load.size(); ++kind)
    if (more[kind] > 0 && load[kind] + more[kind] > limit[kind]) return false;
  return true;
}

// Sums by a small number, of one row after another: dense, with a list of what was touched, so that
// clearing costs what adding did.

class Tally {
 public:
  /// Of numbers 0 .. size - 1.
  explicit Tally(std::int64_t size) : sums_(static_cast<std::size_t>(size), 0) {}

  /// weight > 0.
  void add(std::int64_t number, std::int64_t weight) {
    if (sums_[number] == 0) touched_.push_back(number);
    sums_[number] += weight;
  }
  std::int64_t operator[](std::int64_t number) const { return sums_[number]; }
  /// The numbers with a sum, in the order in which they were first added to.
  const std::vector<std::int64_t>& touched() const { return touched_; }
  void clear() {
    for (const auto number : touched_) sums_[number] = 0;
    touched_.clear();
  }

 private:
  Buffer<std::int64_t> sums_;
  std::vector<std::int64_t> touched_;
};

}  // namespace espalier
