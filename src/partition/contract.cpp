#include "multilevel.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "level_graph.hpp"

namespace espalier {

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
