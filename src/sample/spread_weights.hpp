// One weight per vertex, spread over a process column: inverse transform sampling in two levels.
//
// Weights stand on an axis 0 .. total in the order of the vertices, whoever owns these, so that a
// point means the same on every grid. Each rank of the column keeps a range of the axis
// (weight_ranges). The axis is cut first by rank (p/c + 1 offsets that all have), then by vertex
// (prefix sums that only the rank of the range has). A point is resolved by a binary search in the
// offsets, a message to that rank, and a binary search there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "espalier/base/arrays.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/partition/group_by_owner.hpp"
#include "espalier/product/dist_csr.hpp"
#include "espalier/product/schedule.hpp"

namespace espalier {

/// The vertex whose interval [start, start + weight) of the axis holds a point.
struct Interval {
  std::int64_t vertex;
  std::uint64_t start;
  std::uint64_t weight;
};

/// The weights of consecutive vertices: their begin on the axis, their sum, how many are positive.
struct AxisPart {
  std::uint64_t begin = 0, total = 0;
  std::int64_t support = 0;
};

/// What a rank of a process column of so many parts receives when it has `points` resolved that are
/// spread evenly: how many each of the others asks, a point and an Interval each.
inline Cost find_cost(int parts, double points) {
  return {3.0 * (parts - 1), 8.0 * (parts - 1) + crossing(parts) * points * (8 + sizeof(Interval)),
          parts > 1 ? 3.0 : 0.0};
}

/// Which rank of a process column keeps the weights of which columns; one, where A has one part.
template <class Index, class Space>
RowPartition weight_ranges(const DistCsr<Index, Space>& a) {
  return block_partition(a.local.columns, a.parts());
}

/// A rank's range: prefix[k] .. prefix[k+1] is the interval of vertex first_vertex + k.
template <class Space>
struct WeightAxisOn {
  Array<Space, std::uint64_t> prefix;  ///< [vertices + 1]
  std::int64_t first_vertex = 0;
};

/// The interval of a point among those of `vertices` vertices from `first` on.
ESPALIER_HD inline Interval interval_at(const std::uint64_t* prefix, std::int64_t vertices,
                                        std::int64_t first, std::uint64_t point) {
  const auto v = segment_of(prefix, vertices, point);
  return {first + v, prefix[v], prefix[v + 1] - prefix[v]};
}

/// intervals[k] = that of points[k], which lies on this part of the axis; k < count.
inline void find_intervals(const Cpu&, const WeightAxisOn<Cpu>& axis, const std::uint64_t* points,
                           std::int64_t count, Interval* intervals) {
  for (std::int64_t k = 0; k < count; ++k)
    intervals[k] = interval_at(axis.prefix.data(), std::ssize(axis.prefix) - 1, axis.first_vertex, points[k]);
}
void find_intervals(const Cuda& cuda, const WeightAxisOn<Cuda>& axis, const std::uint64_t* points,
                    std::int64_t count, Interval* intervals);

/// to[order[k]] = from[k] for k < count.
inline void put(const Cpu&, const Interval* from, const std::int64_t* order, std::int64_t count,
                Interval* to) {
  for (std::int64_t k = 0; k < count; ++k) to[order[k]] = from[k];
}
void put(const Cuda& cuda, const Interval* from, const std::int64_t* order, std::int64_t count, Interval* to);

template <class Space>
class SpreadWeightsOn {
 public:
  /// `mine`: the weights of the vertices of my range. Their sum over all rows must stay below 2^64.
  /// Part k of the axis has the vertices cuts[k] .. cuts[k+1]; the last cut is behind them all.
  /// Collective over the process column.
  template <class Index>
  SpreadWeightsOn(const Space& space, const DistCsr<Index, Space>& a, const std::vector<std::uint64_t>& mine,
                  std::vector<std::int64_t> cuts)
      : column_(a.parts() > 1 ? &a.grid->column_comm() : nullptr), cuts_(std::move(cuts)) {
    const auto sum = std::accumulate(mine.begin(), mine.end(), std::uint64_t{0});
    std::vector<std::uint64_t> sums = {sum};
    if (column_ != nullptr) sums = column_->host().all_gather(sum, "setup");
    sum_parts(mine, weight_ranges(a).begin(a.part), std::reduce(sums.begin(), sums.end(), std::uint64_t{0}));
    std::vector<std::uint64_t> ends(sums.size() + 1, 0);
    std::inclusive_scan(sums.begin(), sums.end(), ends.begin() + 1);
    std::vector<std::uint64_t> prefix = {ends[a.part]};
    for (const auto weight : mine) prefix.push_back(prefix.back() + weight);
    axis_ = {copy_to(space, std::span<const std::uint64_t>(prefix)), weight_ranges(a).begin(a.part)};
    offsets_ = {space, std::move(ends)};
  }

  const std::vector<AxisPart>& parts() const { return parts_; }

  /// The interval of each point (< total). Collective over the process column.
  Array<Space, Interval> find(const Space& space, const Array<Space, std::uint64_t>& points,
                              const std::string& label) const {
    const auto count = static_cast<std::int64_t>(points.size());
    Array<Space, Interval> found(count);
    if (column_ == nullptr) {
      find_intervals(space, axis_, points.data(), count, found.data());
      return found;
    }
    // Points to their ranges, intervals back in the same order.
    OwnerGroups<std::uint64_t, Space> groups;
    group_by_owner(space, points.data(), count, offsets_, groups);
    const auto asked_counts = column_->host().exchange_counts(groups.counts, label);
    const auto asked = std::accumulate(asked_counts.begin(), asked_counts.end(), std::int64_t{0});
    Array<Space, std::uint64_t> asked_points(asked);
    column_->all_to_all_v(groups.ids.data(), groups.counts, asked_points.data(), asked_counts, label);
    Array<Space, Interval> answers(asked), mine(count);
    find_intervals(space, axis_, asked_points.data(), asked, answers.data());
    column_->all_to_all_v(answers.data(), asked_counts, mine.data(), groups.counts, label);
    put(space, mine.data(), groups.order.data(), count, found.data());
    predict(column_->host().traffic(), label, find_cost(column_->size(), static_cast<double>(count)));
    return found;
  }

  /// All vertices of positive weight of a part, ascending, to every rank: O(support), on the host.
  /// Collective over the process column.
  std::vector<Interval> all(const Space& space, std::size_t part, const std::string& label) const {
    const auto prefix = copy_from(space, axis_.prefix);
    const auto [begin, end] = mine_of(part, axis_.first_vertex, std::ssize(prefix) - 1);
    std::vector<Interval> mine;
    for (auto v = begin; v < end; ++v)
      if (prefix[v + 1] > prefix[v])
        mine.push_back({axis_.first_vertex + v, prefix[v], prefix[v + 1] - prefix[v]});
    if (column_ == nullptr) return mine;
    const auto everyones = column_->host().all_gather_v(std::span<const Interval>(mine), label);
    return {everyones.begin(), everyones.end()};
  }

 private:
  // Which of my `count` weights, the first of which is vertex `first`'s, are a part's.
  std::pair<std::int64_t, std::int64_t> mine_of(std::size_t part, std::int64_t first,
                                                std::int64_t count) const {
    return {std::clamp<std::int64_t>(cuts_[part] - first, 0, count),
            std::clamp<std::int64_t>(cuts_[part + 1] - first, 0, count)};
  }

  void sum_parts(const std::vector<std::uint64_t>& mine, std::int64_t first, std::uint64_t all) {
    const auto parts = cuts_.size() - 1;
    std::vector<std::uint64_t> supports(parts), totals(parts);
    for (std::size_t part = 0; part < parts; ++part) {
      const auto [begin, end] = mine_of(part, first, std::ssize(mine));
      for (auto k = begin; k < end; ++k) {
        totals[part] += mine[k];
        supports[part] += mine[k] > 0;
      }
    }
    if (column_ != nullptr)
      column_->host().all_reduce(std::span<std::uint64_t>(supports), Reduction::kSum, "setup");
    if (column_ != nullptr && parts > 1)
      column_->host().all_reduce(std::span<std::uint64_t>(totals), Reduction::kSum, "setup");
    if (parts == 1) totals[0] = all;
    std::uint64_t begin = 0;
    for (std::size_t part = 0; part < parts; ++part) {
      parts_.push_back({begin, totals[part], static_cast<std::int64_t>(supports[part])});
      begin += totals[part];
    }
  }

  const CommunicatorOn<Space>* column_ = nullptr;  // null: all weights are mine
  std::vector<std::int64_t> cuts_;
  std::vector<AxisPart> parts_;
  SharedList<std::uint64_t, Space> offsets_;  // [parts + 1] of the axis
  WeightAxisOn<Space> axis_;
};

}  // namespace espalier
