#include "level_graph.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "espalier/comm/communicator.hpp"
#include "multilevel.hpp"

namespace espalier {

LevelBuilder::LevelBuilder(const Communicator& comm, std::int64_t nodes, EdgeWeights weights,
                           std::int64_t entries_expected)
    : ghost_number_(1024), ghost_room_(1024) {
  graph_.nodes = nodes;
  graph_.mine = even_range(nodes, comm.size(), comm.rank());
  graph_.weights = std::move(weights);
  graph_.indptr.reserve(static_cast<std::size_t>(graph_.own()) + 1);
  graph_.indptr.push_back(0);
  graph_.neighbours.reserve(static_cast<std::size_t>(entries_expected));
  graph_.weights.reserve(entries_expected);
}

// The place of a ghost while they are in the order in which they came.
std::int32_t LevelBuilder::ghost(std::int64_t id) {
  if (ghost_number_.size() == ghost_room_) {
    ghost_room_ *= 2;
    ghost_number_ = IdMap(ghost_room_);
    for (const auto known : graph_.ghosts) ghost_number_.insert(known);
  }
  const auto number = ghost_number_.insert(id);
  if (number == static_cast<std::int64_t>(graph_.ghosts.size())) graph_.ghosts.push_back(id);
  return static_cast<std::int32_t>(graph_.own() + number);  // checked in finish
}

// Ghosts by ascending id, and their places accordingly.
void LevelBuilder::sort_ghosts() {
  auto& ghosts = graph_.ghosts;
  std::sort(ghosts.begin(), ghosts.end());
  Buffer<std::int32_t> place(ghosts.size());
  for (std::size_t k = 0; k < ghosts.size(); ++k)
    place[ghost_number_.find(ghosts[k])] = static_cast<std::int32_t>(graph_.own() + k);
  for (auto& neighbour : graph_.neighbours)
    if (neighbour >= graph_.own()) neighbour = place[neighbour - graph_.own()];
}

LevelGraph LevelBuilder::finish(const Communicator& comm, Buffer<ClusterWeights> vertex_weights) {
  ESPALIER_CHECK(static_cast<std::int64_t>(graph_.indptr.size()) == graph_.own() + 1, "{} rows, not {}",
                 graph_.indptr.size() - 1, graph_.own());
  ESPALIER_CHECK(static_cast<std::int64_t>(vertex_weights.size()) == graph_.own(), "{} weights",
                 vertex_weights.size());
  agree(comm, [&] {
    if (graph_.places() > std::numeric_limits<std::int32_t>::max())
      memory_error("a rank has {} vertices and neighbours; use more ranks", graph_.places());
  });
  sort_ghosts();
  graph_.ghost_route = IdRoute(comm, graph_.nodes, graph_.ghosts, "partition");
  graph_.vertex_weights = std::move(vertex_weights);
  return std::move(graph_);
}

LevelGraph make_level_graph(const Communicator& comm, Csr<std::int64_t> rows,
                            Buffer<ClusterWeights> vertex_weights) {
  LevelBuilder builder(comm, rows.columns, {}, rows.entries());
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    for (const auto column : rows.row_indices(row)) builder.add(column, 1);
    builder.end_row();
  }
  rows = {};
  return builder.finish(comm, std::move(vertex_weights));
}

ClusterWeights total_weights(const Communicator& comm, const LevelGraph& graph) {
  ClusterWeights total{};
  for (const auto& weight : graph.vertex_weights) total += weight;
  comm.all_reduce(std::span<std::int64_t>(total), Reduction::kSum, "partition");
  return total;
}

std::int64_t total_edge_weight(const Communicator& comm, const LevelGraph& graph) {
  std::int64_t mine = 0;
  for (std::int64_t e = 0; e < graph.indptr[graph.own()]; ++e) mine += graph.weights[e];
  return comm.all_reduce(mine, Reduction::kSum, "partition");
}

// ---- contraction ----

namespace {

constexpr std::int64_t kNoNumber = -1;

// Numbers the labels that are in use, ascending; returns how many and each own vertex's number.
std::pair<std::int64_t, Buffer<std::int64_t>> number_labels(const Communicator& comm, const LevelGraph& fine,
                                                            const Buffer<std::int64_t>& labels) {
  const auto used = distinct(labels);
  const IdRoute route(comm, fine.nodes, used, "partition");
  Buffer<std::int64_t> number(static_cast<std::size_t>(fine.own()), kNoNumber);
  for (const auto place : route.places()) number[place] = 0;
  const auto here = static_cast<std::int64_t>(std::count(number.begin(), number.end(), 0));
  const auto counts = comm.all_gather(here, "partition");
  auto next = std::accumulate(counts.begin(), counts.begin() + comm.rank(), std::int64_t{0});
  const auto all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  for (auto& entry : number)
    if (entry != kNoNumber) entry = next++;
  Buffer<std::int64_t> of_used(used.size());
  route.pull(comm, number.data(), of_used.data(), "partition");
  return {all, look_up(labels, used, of_used)};
}

// A coarse row on its way: so many entries of it follow.
struct RowPart {
  std::int64_t row;
  std::int64_t entries;
  ClusterWeights weight;
};
struct CoarseEntry {
  std::int64_t column;
  std::int64_t weight;
};

// The share of some coarse rows that lies here: parts by ascending row, entries part after part.
struct RowParts {
  std::vector<RowPart> parts;
  Buffer<CoarseEntry> entries;
};

class Contracting {
 public:
  Contracting(const Communicator& comm, const LevelGraph& fine, const Buffer<std::int64_t>& labels)
      : comm_(comm), fine_(fine) {
    std::tie(nodes_, parent_) = number_labels(comm, fine, labels);
    mine_ = even_range(nodes_, comm.size(), comm.rank());
    weights_.resize(static_cast<std::size_t>(mine_.size()), ClusterWeights{});
  }

  Contraction run() {
    name_columns();
    auto rounds = static_cast<std::int64_t>(fine_.neighbours.size()) / kEntriesPerRound + 1;
    rounds = comm_.all_reduce(rounds, Reduction::kMax, "partition");
    const auto graph_weight = total_edge_weight(comm_, fine_) + fine_.inside;
    LevelBuilder builder(comm_, nodes_, EdgeWeights(graph_weight), fine_.indptr[fine_.own()]);
    for (std::int64_t round = 0; round < rounds; ++round) receive(send(round, rounds), builder);
    Contraction result;
    result.coarse = builder.finish(comm_, std::move(weights_));
    result.coarse.inside = fine_.inside + comm_.all_reduce(inside_, Reduction::kSum, "partition");
    parent_.resize(fine_.own());
    result.parent = std::move(parent_);
    return result;
  }

 private:
  static constexpr std::int64_t kEntriesPerRound = std::int64_t{1} << 20;

  struct Arrived {
    Buffer<RowPart> parts;
    Buffer<CoarseEntry> entries;
    RowRange rows;  // of mine
  };

  // Numbers the coarse ids of my places, so that a row is added up in a dense array; and puts the
  // own vertices into the order of their coarse ids.
  void name_columns() {
    parent_.resize(fine_.places());
    fine_.fill_ghosts(comm_, parent_, "partition");
    columns_ = distinct(parent_);
    number_ = numbers_in(columns_, parent_);
    order_.resize(fine_.own());
    std::iota(order_.begin(), order_.end(), 0);
    std::ranges::sort(order_, {}, [&](std::int32_t v) { return std::pair(number_[v], v); });
    sums_.emplace(static_cast<std::int64_t>(columns_.size()));
  }

  // Adds a fine row to the coarse row `part`.
  void add_row(std::int64_t vertex, RowPart& part) {
    part.weight += fine_.vertex_weights[vertex];
    for (auto e = fine_.indptr[vertex]; e < fine_.indptr[vertex + 1]; ++e) {
      const auto column = number_[fine_.neighbours[e]];
      if (column == number_[vertex])
        inside_ += fine_.weights[e];
      else
        sums_->add(column, fine_.weights[e]);
    }
  }

  // What I have of the coarse rows `rows`.
  void add_parts(RowRange rows, RowParts& out) {
    auto at = std::lower_bound(order_.begin(), order_.end(), rows.begin,
                               [&](std::int32_t v, std::int64_t row) { return parent_[v] < row; });
    while (at != order_.end() && parent_[*at] < rows.end) {
      RowPart part{parent_[*at], 0, {}};
      sums_->clear();
      for (; at != order_.end() && parent_[*at] == part.row; ++at) add_row(*at, part);
      part.entries = static_cast<std::int64_t>(sums_->touched().size());
      for (const auto column : sums_->touched()) out.entries.push_back({columns_[column], (*sums_)[column]});
      out.parts.push_back(part);
    }
  }

  // A share of every rank's coarse rows at a time, so that what travels stays small.
  Arrived send(std::int64_t round, std::int64_t rounds) {
    RowParts out;
    std::vector<std::int64_t> part_counts, entry_counts;
    for (int rank = 0; rank < comm_.size(); ++rank) {
      const auto range = even_range(nodes_, comm_.size(), rank);
      const auto share = even_range(range.size(), rounds, round);
      const auto parts = out.parts.size(), entries = out.entries.size();
      add_parts({range.begin + share.begin, range.begin + share.end}, out);
      part_counts.push_back(static_cast<std::int64_t>(out.parts.size() - parts));
      entry_counts.push_back(static_cast<std::int64_t>(out.entries.size() - entries));
    }
    const auto share = even_range(mine_.size(), rounds, round);
    return {comm_.all_to_all_v(std::span<const RowPart>(out.parts), part_counts, "partition").data,
            comm_.all_to_all_v(std::span<const CoarseEntry>(out.entries), entry_counts, "partition").data,
            share};
  }

  // Adds up the parts of each row, by ascending column.
  void receive(const Arrived& arrived, LevelBuilder& builder) {
    std::vector<std::int64_t> begin(static_cast<std::size_t>(arrived.rows.size()) + 1, 0);
    for (const auto& part : arrived.parts) begin[place_in(arrived, part) + 1] += part.entries;
    for (std::size_t row = 1; row < begin.size(); ++row) begin[row] += begin[row - 1];
    Buffer<CoarseEntry> entries(arrived.entries.size());
    auto next = begin;
    const CoarseEntry* from = arrived.entries.data();
    for (const auto& part : arrived.parts) {
      weights_[part.row - mine_.begin] += part.weight;
      auto& place = next[place_in(arrived, part)];
      std::copy(from, from + part.entries, entries.data() + place);
      from += part.entries;
      place += part.entries;
    }
    for (std::int64_t row = 0; row < arrived.rows.size(); ++row)
      add_row(entries.data() + begin[row], entries.data() + begin[row + 1], builder);
  }

  std::size_t place_in(const Arrived& arrived, const RowPart& part) const {
    return static_cast<std::size_t>(part.row - mine_.begin - arrived.rows.begin);
  }

  static void add_row(CoarseEntry* begin, CoarseEntry* end, LevelBuilder& builder) {
    std::ranges::sort(begin, end, {}, &CoarseEntry::column);
    while (begin != end) {
      CoarseEntry sum = *begin++;
      for (; begin != end && begin->column == sum.column; ++begin) sum.weight += begin->weight;
      builder.add(sum.column, sum.weight);
    }
    builder.end_row();
  }

  const Communicator& comm_;
  const LevelGraph& fine_;
  std::int64_t nodes_ = 0;        // of the coarse level
  RowRange mine_;                 // its rows here
  Buffer<std::int64_t> parent_;   // [places] the coarse id of each
  Buffer<std::int64_t> columns_;  // the coarse ids of my places, ascending
  Buffer<std::int32_t> number_;   // [places] parent's number in columns_
  Buffer<std::int32_t> order_;    // [own] by ascending parent
  std::optional<Tally> sums_;
  Buffer<ClusterWeights> weights_;  // [coarse own]
  std::int64_t inside_ = 0;
};

}  // namespace

Contraction contract(const Communicator& comm, const LevelGraph& fine, const Buffer<std::int64_t>& labels) {
  return Contracting(comm, fine, labels).run();
}

}  // namespace espalier
