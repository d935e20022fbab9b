// A stacked frontier asked of the ranks of a group, batch by batch, and the ways of answering.
//
// The owner rank sends every vertex of its frontiers to the rank that serves it, with a line (batch
// number, rows) for each batch: the server knows which rows belong to which batch of whom. Nothing
// is asked twice, so answers need no ids: they come in the order of the request. `push` asks the
// owners down a process column, `staged` asks along a process row.
//
//   owner rank of a batch                  server
//   [batch, rows] ..., ids             ──► lines, ids                      label/ids
//   results of each row                ◄── sizes, indices, values          `back`
//   partial sums of each batch         ◄── columns, sums                   label/reduction
//   columns to select, of each batch   ──► picks                           label/picks
#pragma once

#include "fetch_rows.inl.hpp"

namespace espalier {

template <class Index, class Space>
class RowRequest {
 public:
  /// Collective over `group`. `servers`: which of its ranks serves a vertex; with `cut` (not null)
  /// all that hold entries of its row do. `q` must outlive this.
  RowRequest(const Space& space, const CommunicatorOn<Space>& group, const FrontierOn<Space>& q,
             const OwnersOn<Space>& servers, const CutRows* cut, const ProductShape& shape,
             const std::string& label)
      : group_(group), q_(q), shape_(shape), label_(label) {
    if (cut == nullptr)
      group_by_owner(space, q.vertices.data(), q.rows(), servers, groups_);
    else if constexpr (std::is_same_v<Space, Cpu>)
      group_by_holder(space, q.vertices.data(), q.rows(), cut->holders->of(), group.size(), groups_);
    traffic().count(MemoryStep::kGroupByOwner, {.rows = q.rows()});
    const auto numbers = exchange_lines(count_by_batch(space, groups_, q));
    segments_ = {space, std::move(segment_begins_)};
    numbers_ = {space, numbers};
    asked_.resize(segments_.back());
    group.all_to_all_v(groups_.ids.data(), groups_.counts, asked_.data(), asked_counts_, label + "/ids");
    traffic().count(MemoryStep::kKeys, {.rows = std::ssize(asked_)});
    predict(traffic(), label + "/ids", request_cost(group.size(), batches(), rows(), shape_));
  }

  // ---- As a server: what the others want of me --------------------------------------------------

  /// Vertices, asker after asker, and by batch within.
  const Array<Space, Index>& asked() const { return asked_; }
  /// [lines + 1]: the rows of each (asker, batch) in asked().
  const SharedList<std::int64_t, Space>& segments() const { return segments_; }
  Array<Space, RowKey> keys(const Space& space) const {
    return make_keys(space, asked_.data(), segments_, numbers_);
  }

  // ---- As an owner rank: where the answers to my rows are ---------------------------------------

  /// Which row of Q answer j is to.
  const std::int64_t* order() const { return groups_.order.data(); }

  // ---- Both: collective over the group ----------------------------------------------------------

  /// Sends answer r for every row r of asked() and returns the answers to my rows in the order of
  /// the request. `values`: do answers hold values, anywhere? `back`: the label.
  template <class Id>
  Entries<Id, Space> send_back(const Space& space, const Entries<Id, Space>& answers, bool values,
                               const std::string& back) const {
    auto mine = send_entries<Index>(space, group_, answers, asked_counts_, groups_.counts, values, back);
    traffic().count(MemoryStep::kSizes, {.rows = std::ssize(asked_) + groups_.size()});
    predict(traffic(), back,
            rows_cost(group_.size(), rows(), static_cast<double>(mine.entries()), sizeof(Id), values ? 4 : 0,
                      shape_));
    return mine;
  }

  /// Sends numbers of some rows of asked(), those for which sends(vertex, server) with myself as
  /// the server, and puts what arrives to the rows of Q. On the CPU.
  template <class T, class Sends>
  void send_back_some(const Buffer<T>& numbers, const Sends& sends, const std::string& back,
                      Buffer<T>& of_rows) const {
    std::vector<std::int64_t> sent, received, rows;
    auto vertex = asked_.begin();
    for (const auto count : asked_counts_) {
      sent.push_back(std::count_if(vertex, vertex + count, [&](auto v) { return sends(v, group_.rank()); }));
      vertex += count;
    }
    std::int64_t answer = 0;
    for (int server = 0; server < group_.size(); ++server) {
      const auto before = std::ssize(rows);
      for (const auto end = answer + groups_.counts[server]; answer < end; ++answer)
        if (sends(groups_.ids[answer], server)) rows.push_back(groups_.order[answer]);
      received.push_back(std::ssize(rows) - before);
    }
    Buffer<T> mine(rows.size());
    group_.host().all_to_all_v(numbers.data(), sent, mine.data(), received, back);
    for (std::size_t k = 0; k < rows.size(); ++k) of_rows[rows[k]] = mine[k];
    predict(traffic(), back, merge_cost(group_.size(), static_cast<double>(rows.size()), shape_));
  }

  /// Sends list s of `partial` for segment s; visits the sum of my batches over all servers.
  void reduce(const Space& space, const Sums<Index, Space>& partial, std::int64_t columns,
              const SumVisitor<Index, Space>& visit) const {
    const auto label = label_ + "/reduction";
    const auto sizes = counts_between(partial.offsets.host());
    Buffer<std::int64_t> my_sizes;
    group_.host().all_to_all_v(std::span<const std::int64_t>(sizes), asked_lines_, lines_, my_sizes, label);
    const auto sent = sum_by_rank(asked_lines_, sizes), received = sum_by_rank(lines_, my_sizes);
    Sums<Index, Space> mine;
    mine.offsets = {space, begins_of(my_sizes)};
    mine.columns.resize(mine.offsets.back());
    mine.sums.resize(mine.offsets.back());
    group_.all_to_all_v(partial.columns.data(), sent, mine.columns.data(), received, label);
    group_.all_to_all_v(partial.sums.data(), sent, mine.sums.data(), received, label);
    predict(traffic(), label,
            sums_cost(group_.size(), batches(), static_cast<double>(mine.columns.size()), shape_));
    merge_sums(space, mine, {space, batch_of_line_}, q_.batches(), columns, visit);
  }

  /// The columns of every segment, one list under the other.
  struct Picks {
    Array<Space, Index> ids;
    SharedList<std::int64_t, Space> offsets;
  };
  /// Sends the columns of each of my batches to all who serve a row of it.
  Picks send_picks(const Space& space, const Index* columns,
                   const SharedList<std::int64_t, Space>& offsets) const {
    const auto label = label_ + "/picks";
    std::vector<std::int64_t> sizes;
    for (const auto batch : batch_of_line_) sizes.push_back(offsets[batch + 1] - offsets[batch]);
    const auto picks = copy_lists(space, columns, offsets, batch_of_line_);
    Buffer<std::int64_t> asked_sizes;
    group_.host().all_to_all_v(std::span<const std::int64_t>(sizes), lines_, asked_lines_, asked_sizes,
                               label);
    const auto sent = sum_by_rank(lines_, sizes), received = sum_by_rank(asked_lines_, asked_sizes);
    Picks wanted;
    wanted.offsets = {space, begins_of(asked_sizes)};
    wanted.ids.resize(wanted.offsets.back());
    group_.all_to_all_v(picks.data(), sent, wanted.ids.data(), received, label);
    predict(traffic(), label,
            picks_cost(group_.size(), batches(), static_cast<double>(offsets.back()), shape_));
    return wanted;
  }

 private:
  /// A batch of one asker.
  struct Line {
    std::int64_t batch, rows;
  };

  // Sends a line for each batch that a server has rows of; counts: [servers][batches]. Returns the
  // numbers of the batches that others ask me about.
  std::vector<std::int64_t> exchange_lines(const std::vector<std::int64_t>& counts) {
    Buffer<Line> lines;
    for (int server = 0; server < group_.size(); ++server) {
      lines_.push_back(0);
      for (std::int64_t batch = 0; batch < q_.batches(); ++batch) {
        const auto rows = counts[server * q_.batches() + batch];
        if (rows == 0) continue;
        lines.push_back({q_.numbers[batch], rows});
        batch_of_line_.push_back(batch);
        ++lines_.back();
      }
    }
    const auto asked = group_.host().all_to_all_v(std::span<const Line>(lines), lines_, label_ + "/ids");
    asked_lines_ = asked.counts;
    std::vector<std::int64_t> numbers;
    for (const auto& line : asked.data) {
      segment_begins_.push_back(segment_begins_.back() + line.rows);
      numbers.push_back(line.batch);
    }
    const auto ends = begins_of(asked_lines_);
    for (int asker = 0; asker < group_.size(); ++asker)
      asked_counts_.push_back(segment_begins_[ends[asker + 1]] - segment_begins_[ends[asker]]);
    return numbers;
  }

  double rows() const { return static_cast<double>(groups_.size()); }
  double batches() const { return static_cast<double>(q_.batches()); }
  Traffic& traffic() const { return group_.host().traffic(); }

  const CommunicatorOn<Space>& group_;
  const FrontierOn<Space>& q_;
  ProductShape shape_;
  std::string label_;
  // Of the request: rows by server, the lines of each server, the batch (by place in q) of each.
  OwnerGroups<Index, Space> groups_;
  std::vector<std::int64_t> lines_, batch_of_line_;
  // Of what is asked of me.
  std::vector<std::int64_t> asked_counts_, asked_lines_, segment_begins_ = {0};
  Array<Space, Index> asked_;
  SharedList<std::int64_t, Space> segments_, numbers_;
};

}  // namespace espalier
