#include "espalier/sample/examples.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/base/keyed_permutation.hpp"
#include "espalier/sample/draw.hpp"
#include "group_order.hpp"

namespace espalier {

namespace {

class ShuffledExamples final : public Examples {
 public:
  ShuffledExamples(const LearntVertices& learnt, std::int64_t batch_size, std::uint64_t seed,
                   std::uint64_t epoch, const BatchGroups* groups)
      : order_(learnt.vertices.begin(), learnt.vertices.end()),
        tags_(learnt.tags.begin(), learnt.tags.end()),
        batch_size_(std::clamp<std::int64_t>(batch_size, 1, std::max<std::int64_t>(1, std::ssize(order_)))),
        seed_(seed),
        epoch_(epoch) {
    ESPALIER_CHECK(tags_.empty() || tags_.size() == order_.size(), "{} tags of {} training vertices",
                   tags_.size(), order_.size());
    if (groups == nullptr)
      shuffle(0, std::ssize(order_), 0);
    else
      gather(*groups);
  }

  std::int64_t batches() const override {
    return begins_.empty() ? count_batches(std::ssize(order_), batch_size_) : std::ssize(begins_) - 1;
  }
  std::int64_t count_seeds(std::int64_t begin, std::int64_t end) const override {
    return batch_begin(end) - batch_begin(begin);
  }
  SeedBatch batch(std::int64_t k) const override {
    const auto from = batch_begin(k);
    const auto size = static_cast<std::size_t>(batch_begin(k + 1) - from);
    SeedBatch batch = {k, {order_.data() + from, size}};
    if (!tags_.empty()) batch.tags = {tags_.data() + from, size};
    return batch;
  }
  std::span<const std::int32_t> groups() const override { return group_of_batch_; }

 private:
  // Where the seeds of a batch begin.
  std::int64_t batch_begin(std::int64_t batch) const {
    return begins_.empty() ? std::min(batch * batch_size_, std::ssize(order_)) : begins_[batch];
  }
  void shuffle(std::int64_t begin, std::int64_t end, std::uint64_t row);
  void gather(const BatchGroups& groups);

  Buffer<std::int64_t> order_;
  Buffer<std::int32_t> tags_;  // beside order_, or empty
  std::int64_t batch_size_;
  std::uint64_t seed_, epoch_;
  std::vector<std::int64_t> begins_;          // [batches + 1] with groups
  std::vector<std::int32_t> group_of_batch_;  // [batches] with groups
};

// Shuffles order_[begin .. end) by draws of `row`. Draws do not depend on swaps: what some of them
// will move is called from memory before the first.
void ShuffledExamples::shuffle(std::int64_t begin, std::int64_t end, std::uint64_t row) {
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

// list[k] goes where the seeds of group of[k] stand, in the order of the list within a group.
template <class T>
void sort_by_group(Buffer<T>& list, const BatchGroups& groups, std::vector<std::int64_t> next) {
  const auto before = list;
  for (std::int64_t k = 0; k < std::ssize(before); ++k) list[next[groups.of[k]]++] = before[k];
}

// Seeds group after group, each shuffled; then batch after batch.
void ShuffledExamples::gather(const BatchGroups& groups) {
  ESPALIER_CHECK(groups.of.size() == order_.size(), "groups of {} of {} training vertices", groups.of.size(),
                 order_.size());
  std::vector<std::int64_t> begins(static_cast<std::size_t>(groups.count) + 1, 0);
  for (const auto group : groups.of) ++begins[group + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  sort_by_group(order_, groups, begins);
  if (!tags_.empty()) sort_by_group(tags_, groups, begins);

  for (std::int32_t group = 0; group < groups.count; ++group)
    shuffle(begins[group], begins[group + 1], static_cast<std::uint64_t>(group) + 1);
  const auto seeds = order_;
  const auto tags = tags_;
  begins_ = {0};
  for (const auto& batch : order_group_batches(begins, batch_size_, seed_, epoch_)) {
    std::copy(seeds.begin() + batch.begin, seeds.begin() + batch.end, order_.begin() + begins_.back());
    if (!tags.empty())
      std::copy(tags.begin() + batch.begin, tags.begin() + batch.end, tags_.begin() + begins_.back());
    begins_.push_back(begins_.back() + batch.end - batch.begin);
    group_of_batch_.push_back(batch.group);
  }
}

class VertexPartition final : public Examples {
 public:
  VertexPartition(std::int64_t n, const LearntVertices& learnt, std::int64_t batch_size, std::uint64_t seed,
                  std::uint64_t epoch)
      : n_(n),
        batches_(count_batches(n, std::max<std::int64_t>(1, batch_size))),
        learnt_(learnt),
        permutation_({.seed = seed, .purpose = Purpose::kShuffle, .epoch = epoch}, n) {}

  std::int64_t batches() const override { return batches_; }
  std::int64_t count_seeds(std::int64_t begin, std::int64_t end) const override {
    return batch_begin(end) - batch_begin(begin);
  }
  SeedBatch batch(std::int64_t k) const override {
    struct Memory {
      Buffer<std::int64_t> seeds;
      Buffer<std::int32_t> tags;
    };
    const auto memory = std::make_shared<Memory>();
    for (auto place = batch_begin(k); place < batch_begin(k + 1); ++place)
      memory->seeds.push_back(permutation_(place));
    std::ranges::sort(memory->seeds);
    if (!learnt_.tags.empty())
      for (auto at = learnt_.vertices.begin(); const auto v : memory->seeds) {
        at = std::lower_bound(at, learnt_.vertices.end(), v);
        const bool known = at != learnt_.vertices.end() && *at == v;
        memory->tags.push_back(known ? learnt_.tags[at - learnt_.vertices.begin()] : -1);
      }
    return {k, memory->seeds, memory->tags, memory};
  }
  std::int64_t population() const override { return n_; }

 private:
  std::int64_t batch_begin(std::int64_t batch) const {
    return static_cast<std::int64_t>(static_cast<__int128>(n_) * batch / batches_);
  }

  std::int64_t n_, batches_;
  LearntVertices learnt_;
  KeyedPermutation permutation_;
};

}  // namespace

std::shared_ptr<const Examples> VertexSource::of_epoch(const EpochShape& shape) const {
  if (shape.population > 0)
    return partition_vertices(shape.population, learnt_, shape.batch_size, shape.seed, shape.epoch);
  return shuffle_examples(learnt_, shape.batch_size, shape.seed, shape.epoch, shape.groups);
}

std::shared_ptr<const Examples> shuffle_examples(const LearntVertices& learnt, std::int64_t batch_size,
                                                 std::uint64_t seed, std::uint64_t epoch,
                                                 const BatchGroups* groups) {
  return std::make_shared<ShuffledExamples>(learnt, batch_size, seed, epoch, groups);
}

std::shared_ptr<const Examples> partition_vertices(std::int64_t n, const LearntVertices& learnt,
                                                   std::int64_t batch_size, std::uint64_t seed,
                                                   std::uint64_t epoch) {
  return std::make_shared<VertexPartition>(n, learnt, batch_size, seed, epoch);
}

}  // namespace espalier
