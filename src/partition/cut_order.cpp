// Cutting a sequence of clusters into stretches, so that the largest excess over the mean is least.
//
// Weights are not negative, so a part that has more clusters has no less excess: whether an excess
// suffices is found by filling part after part as far as they go, and the least that suffices by
// bisection, down to neighbouring numbers. Filled parts would leave little to the last; so of the
// cuts with that excess one is taken that ends its parts near where even ones would:
//
//     end(i) = the place nearest to i / parts of the whole, within [first(i), reach(end(i-1))],
//
// where reach is how far a part goes, and first(i) the earliest end after which parts - i parts
// still hold the rest. It is always possible, as reach ascends.
#include <algorithm>
#include <cmath>
#include <functional>
#include <ranges>

#include "espalier/partition/order.hpp"

namespace espalier {

namespace {

constexpr std::array<double, kBalances> kSlack = {1, 2.5, 1, 2.5, 2.5};
constexpr std::array<double, 2> kSlackOfType = {1, 4};

double slack_of(std::size_t kind) {
  return kind < kBalances ? kSlack[kind] : kSlackOfType[(kind - kBalances) % 2];
}

// The first number in [low, high) from which on `holds` is true, or high.
template <class Holds>
std::int64_t first_where(std::int64_t low, std::int64_t high, const Holds& holds) {
  const auto all = std::views::iota(low, high);
  return low + (std::ranges::partition_point(all, std::not_fn(std::cref(holds))) - all.begin());
}

class Cutter {
 public:
  Cutter(const ClusterContents& contents, int parts)
      : count_(std::ssize(contents.weights)), parts_(parts), heaviest_(contents.kinds(), 0) {
    prefix_.emplace_back(contents.kinds(), 0);
    for (std::size_t i = 0; i < contents.weights.size(); ++i) {
      prefix_.push_back(prefix_.back());
      for (std::size_t k = 0; k < contents.kinds(); ++k) {
        const auto weight = contents.weight(i, k);
        prefix_.back()[k] += weight;
        if (k >= kBalances) heaviest_[k] = std::max(heaviest_[k], weight);
      }
    }
  }

  RowPartition cut() const {
    const auto excess = least_excess();
    const auto first = first_ends(excess);
    std::vector<std::int64_t> ends = {0};
    for (int i = 1; i < parts_; ++i) {
      const auto before = ends.back();
      auto low = std::max(first[i], std::min(before + 1, count_));
      auto high = std::min(reach(before, excess), std::max(low, count_ - (parts_ - i)));
      ends.push_back(std::clamp(even_end(i), low, high));
    }
    ends.push_back(count_);
    return RowPartition(std::move(ends));
  }

 private:
  // The excess of a part with clusters [begin, end).
  double excess_of(std::int64_t begin, std::int64_t end) const {
    double excess = -1;
    for (std::size_t k = 0; k < heaviest_.size(); ++k) {
      const auto total = prefix_.back()[k];
      if (total == 0) continue;
      const auto mean = std::max(static_cast<double>(total) / parts_, static_cast<double>(heaviest_[k]));
      const auto weight = static_cast<double>(prefix_[end][k] - prefix_[begin][k]);
      excess = std::max(excess, (weight / mean - 1) / slack_of(k));
    }
    return excess;
  }

  // The last end of a part that begins there and has at most this excess.
  std::int64_t reach(std::int64_t begin, double excess) const {
    return first_where(begin + 1, count_ + 1, [&](auto end) { return excess_of(begin, end) > excess; }) - 1;
  }

  // The same from the other side: its first beginning.
  std::int64_t first_begin(std::int64_t end, double excess) const {
    return first_where(0, end, [&](auto begin) { return excess_of(begin, end) <= excess; });
  }

  // Do the parts hold everything with this excess?
  bool suffices(double excess) const {
    std::int64_t end = 0;
    for (int i = 0; i < parts_ && end < count_; ++i) end = reach(end, excess);
    return end == count_;
  }

  double least_excess() const {
    double low = 0, high = parts_;  // one part with everything has less
    if (suffices(low)) return low;
    for (;;) {
      const auto middle = low + (high - low) / 2;
      if (middle <= low || middle >= high) return high;
      (suffices(middle) ? high : low) = middle;
    }
  }

  // first[i]: the earliest end of part i - 1 after which the others hold the rest.
  std::vector<std::int64_t> first_ends(double excess) const {
    std::vector<std::int64_t> first(static_cast<std::size_t>(parts_) + 1, count_);
    for (auto i = first.size() - 1; i > 0; --i) first[i - 1] = first_begin(first[i], excess);
    return first;
  }

  // Where i of the parts have their share of vertices and train, the mean of both, most nearly.
  std::int64_t even_end(int i) const {
    const auto wanted = static_cast<double>(i) / parts_ * share(count_);
    const auto low = first_where(0, count_, [&](auto end) { return share(end) >= wanted; });
    return low > 0 && wanted - share(low - 1) < share(low) - wanted ? low - 1 : low;
  }

  double share(std::int64_t end) const {
    double sum = 0;
    for (std::size_t k = 0; k < kBalances; ++k)
      if (prefix_.back()[k] > 0 && kSlack[k] == 1)
        sum += static_cast<double>(prefix_[end][k]) / static_cast<double>(prefix_.back()[k]);
    return sum;
  }

  std::int64_t count_;
  int parts_;
  std::vector<std::int64_t> heaviest_;             // [kinds] of a type's, in a cluster; else 0
  std::vector<std::vector<std::int64_t>> prefix_;  // [clusters + 1] [kinds] what is before each
};

}  // namespace

RowPartition cut_order(const ClusterContents& contents, int parts) {
  return Cutter(contents, parts).cut();
}

std::vector<double> balances_of(const ClusterContents& contents, const RowPartition& cuts) {
  std::vector<double> balances;
  for (std::size_t k = 0; k < contents.kinds(); ++k) {
    std::int64_t total = 0, largest = 0;
    for (int part = 0; part < cuts.parts(); ++part) {
      std::int64_t sum = 0;
      for (auto i = cuts.begin(part); i < cuts.end(part); ++i)
        sum += contents.weight(static_cast<std::size_t>(i), k);
      total += sum;
      largest = std::max(largest, sum);
    }
    balances.push_back(total == 0 ? 1
                                  : static_cast<double>(largest) * cuts.parts() / static_cast<double>(total));
  }
  return balances;
}

RowPartition cut_training(std::span<const ClusterWeights> weights, int groups) {
  std::vector<ClusterWeights> training(weights.size(), ClusterWeights{});
  for (std::size_t k = 0; k < weights.size(); ++k) training[k][kTrainWeight] = weights[k][kTrainWeight];
  return cut_order(training, groups);
}

Ownership own_by(const Order& order, int parts) {
  if (parts == 1) return block_partition(order.info.nodes, 1);
  const auto part_of = cut_order(order.info, parts).owners();
  return Ownership(std::make_shared<const OwnerMap>(
      order.info.nodes, parts, [&](std::int64_t v) { return part_of[order.cluster[v]]; }));
}

}  // namespace espalier
