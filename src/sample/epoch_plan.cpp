#include "espalier/sample/epoch_plan.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/sample/draw.hpp"

namespace espalier {

EpochPlan::EpochPlan(std::span<const std::int64_t> training_vertices, std::int64_t batch_size,
                     std::int64_t batches_per_step, int ranks, std::uint64_t seed, std::uint64_t epoch,
                     std::span<const std::int32_t> tags, const BatchGroups* groups)
    : order_(training_vertices.begin(), training_vertices.end()),
      tags_(tags.begin(), tags.end()),
      batch_size_(std::clamp<std::int64_t>(batch_size, 1, std::max<std::int64_t>(1, std::ssize(order_)))),
      batches_per_step_(batches_per_step),
      ranks_(ranks),
      seed_(seed),
      epoch_(epoch) {
  ESPALIER_CHECK(tags_.empty() || tags_.size() == order_.size(), "{} tags of {} training vertices",
                 tags_.size(), order_.size());
  if (groups == nullptr)
    shuffle(0, std::ssize(order_), 0);
  else
    gather(*groups);
  batches_per_step_ = std::clamp<std::int64_t>(batches_per_step, 1, std::max<std::int64_t>(1, batches()));
}

// Shuffles order_[begin .. end) by draws of `row`. Draws do not depend on swaps: what some of them
// will move is called from memory before the first.
void EpochPlan::shuffle(std::int64_t begin, std::int64_t end, std::uint64_t row) {
  RandomWords words({.seed = seed_, .purpose = Purpose::kShuffle, .epoch = epoch_, .row = row});
  auto* const order = order_.data() + begin;
  auto* const tags = tags_.empty() ? nullptr : tags_.data() + begin;
  std::array<std::size_t, 32> chosen;
  for (auto left = static_cast<std::size_t>(end - begin); left > 1;) {
    const auto swaps = std::min(chosen.size(), left - 1);
    for (std::size_t k = 0; k < swaps; ++k) {
      chosen[k] = mulhi(words.next(), left - k);
      __builtin_prefetch(&order[chosen[k]], 1);
      if (tags != nullptr) __builtin_prefetch(&tags[chosen[k]], 1);
    }
    for (std::size_t k = 0; k < swaps; ++k) {
      --left;
      std::swap(order[left], order[chosen[k]]);
      if (tags != nullptr) std::swap(tags[left], tags[chosen[k]]);
    }
  }
}

namespace {

// A batch before the batches are put in order.
struct GroupBatch {
  std::uint64_t time;  // in the epoch, [0, 2^64)
  std::int32_t group;
  std::int64_t begin, end;  // of the seeds, group after group
};

// list[k] goes where the seeds of group of[k] stand, in the order of the list within a group.
template <class T>
void sort_by_group(Buffer<T>& list, const BatchGroups& groups, std::vector<std::int64_t> next) {
  const auto before = list;
  for (std::int64_t k = 0; k < std::ssize(before); ++k) list[next[groups.of[k]]++] = before[k];
}

// (j + u) / n of 2^64, where u is in 2^-32.
std::uint64_t time_of(std::int64_t j, std::uint32_t u, std::int64_t n) {
  const auto numerator = static_cast<unsigned __int128>(j) << 32 | u;
  return static_cast<std::uint64_t>((numerator << 32) / static_cast<unsigned __int128>(n));
}

// The bits of a 32-bit number in reverse.
std::uint32_t reversed(std::uint32_t x) {
  std::uint32_t y = 0;
  for (int bit = 0; bit < 32; ++bit, x >>= 1) y = y << 1 | (x & 1);
  return y;
}

}  // namespace

// Seeds group after group, each shuffled; then batch after batch.
void EpochPlan::gather(const BatchGroups& groups) {
  ESPALIER_CHECK(groups.of.size() == order_.size(), "groups of {} of {} training vertices", groups.of.size(),
                 order_.size());
  std::vector<std::int64_t> begins(static_cast<std::size_t>(groups.count) + 1, 0);
  for (const auto group : groups.of) ++begins[group + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  sort_by_group(order_, groups, begins);
  if (!tags_.empty()) sort_by_group(tags_, groups, begins);

  const auto turn =
      static_cast<std::uint32_t>(random64({.seed = seed_, .purpose = Purpose::kShuffle, .epoch = epoch_}, 0));
  std::vector<GroupBatch> batches;
  for (std::int32_t group = 0; group < groups.count; ++group) {
    const auto begin = begins[group], size = begins[group + 1] - begin,
               count = count_batches(size, batch_size_);
    shuffle(begin, begin + size, static_cast<std::uint64_t>(group) + 1);
    const auto u = reversed(static_cast<std::uint32_t>(group)) + turn;
    for (std::int64_t j = 0; j < count; ++j)
      batches.push_back(
          {time_of(j, u, count), group, begin + size * j / count, begin + size * (j + 1) / count});
  }
  std::ranges::sort(batches, {}, [](const GroupBatch& b) { return std::pair(b.time, b.group); });

  const auto seeds = order_;
  const auto tags = tags_;
  std::vector<std::int32_t> group_of_batch;
  begins_ = {0};
  for (const auto& batch : batches) {
    std::copy(seeds.begin() + batch.begin, seeds.begin() + batch.end, order_.begin() + begins_.back());
    if (!tags.empty())
      std::copy(tags.begin() + batch.begin, tags.begin() + batch.end, tags_.begin() + begins_.back());
    begins_.push_back(begins_.back() + batch.end - batch.begin);
    group_of_batch.push_back(batch.group);
  }
  deal(group_of_batch);
}

// Who keeps what: the ranks equal stretches of a step's batches in the order of their groups.
void EpochPlan::deal(const std::vector<std::int32_t>& group_of_batch) {
  keepers_.resize(group_of_batch.size());
  batches_per_step_ = std::clamp<std::int64_t>(batches_per_step_, 1, std::max<std::int64_t>(1, batches()));
  for (std::int64_t step = 0; step < steps(); ++step) {
    std::vector<std::int64_t> of_step(step_end(step) - step_begin(step));
    std::iota(of_step.begin(), of_step.end(), step_begin(step));
    std::ranges::stable_sort(of_step, {}, [&](std::int64_t batch) { return group_of_batch[batch]; });
    for (std::int64_t k = 0; k < std::ssize(of_step); ++k)
      keepers_[of_step[k]] = static_cast<std::int32_t>(k * ranks_ / std::ssize(of_step));
  }
}

}  // namespace espalier
