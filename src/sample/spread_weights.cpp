#include "spread_weights.hpp"

#include <algorithm>
#include <numeric>

#include "espalier/sample/draw.hpp"

namespace espalier {

template <class Index>
SpreadWeights::SpreadWeights(const DistCsr<Index>& a, const std::vector<std::uint64_t>& mine)
    : column_(a.partition.parts() > 1 ? &a.grid->column_comm() : nullptr),
      first_vertex_(a.first_row()),
      part_(a.part),
      prefix_(mine.size() + 1) {
  const auto sum = std::accumulate(mine.begin(), mine.end(), std::uint64_t{0});
  support_ = std::count_if(mine.begin(), mine.end(), [](std::uint64_t weight) { return weight > 0; });
  std::vector<std::uint64_t> sums = {sum};
  if (column_ != nullptr) {
    sums = column_->all_gather(sum, "setup");
    support_ = column_->all_reduce(support_, Reduction::kSum, "setup");
  }
  offsets_.assign(sums.size() + 1, 0);
  std::inclusive_scan(sums.begin(), sums.end(), offsets_.begin() + 1);
  prefix_[0] = offsets_[static_cast<std::size_t>(part_)];
  for (std::size_t v = 0; v < mine.size(); ++v) prefix_[v + 1] = prefix_[v] + mine[v];
}

Interval SpreadWeights::find_mine(std::uint64_t point) const {
  const auto found = find_interval(prefix_.data(), std::ssize(prefix_) - 1, point);
  const auto v = static_cast<std::size_t>(found);
  return {first_vertex_ + found, prefix_[v], prefix_[v + 1] - prefix_[v]};
}

std::vector<Interval> SpreadWeights::find(std::span<const std::uint64_t> points,
                                          const std::string& label) const {
  std::vector<Interval> found(points.size());
  if (column_ == nullptr) {
    std::ranges::transform(points, found.begin(), [&](std::uint64_t point) { return find_mine(point); });
    return found;
  }
  // Points to their block rows, intervals back in the same order.
  const auto parts = std::ssize(offsets_) - 1;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(parts), 0);
  std::vector<std::size_t> part_of(points.size());
  for (std::size_t k = 0; k < points.size(); ++k) {
    part_of[k] = static_cast<std::size_t>(find_interval(offsets_.data(), parts, points[k]));
    ++counts[part_of[k]];
  }
  std::vector<std::int64_t> next(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), next.begin(), std::int64_t{0});
  std::vector<std::size_t> place(points.size());
  Buffer<std::uint64_t> sorted(points.size());
  for (std::size_t k = 0; k < points.size(); ++k) {
    place[k] = static_cast<std::size_t>(next[part_of[k]]++);
    sorted[place[k]] = points[k];
  }
  const auto asked = column_->all_to_all_v(std::span<const std::uint64_t>(sorted), counts, label);
  Buffer<Interval> answers(asked.data.size()), mine;
  std::ranges::transform(asked.data, answers.begin(), [&](std::uint64_t point) { return find_mine(point); });
  column_->all_to_all_v(std::span<const Interval>(answers), asked.counts, counts, mine, label);
  for (std::size_t k = 0; k < points.size(); ++k) found[k] = mine[place[k]];
  const auto cost = find_cost(static_cast<int>(parts), static_cast<double>(points.size()));
  column_->traffic().predict(label, cost.messages, cost.bytes);
  return found;
}

std::vector<Interval> SpreadWeights::all(const std::string& label) const {
  Buffer<Interval> mine;
  for (std::size_t v = 0; v + 1 < prefix_.size(); ++v)
    if (prefix_[v + 1] > prefix_[v])
      mine.push_back({first_vertex_ + static_cast<std::int64_t>(v), prefix_[v], prefix_[v + 1] - prefix_[v]});
  if (column_ == nullptr) return {mine.begin(), mine.end()};
  const auto everyones = column_->all_gather_v(std::span<const Interval>(mine), label);
  return {everyones.begin(), everyones.end()};
}

template SpreadWeights::SpreadWeights(const DistCsr<std::int32_t>&, const std::vector<std::uint64_t>&);
template SpreadWeights::SpreadWeights(const DistCsr<std::int64_t>&, const std::vector<std::uint64_t>&);

}  // namespace espalier
