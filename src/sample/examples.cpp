#include "espalier/sample/examples.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/base/group_stably.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/comm/traffic.hpp"
#include "espalier/sample/draw.hpp"
#include "group_order.hpp"

namespace espalier {

namespace {

class ShuffledExamples final : public Examples {
 public:
  ShuffledExamples(const TrainingVertices& training, const EpochShape& shape)
      : order_(training.vertices.begin(), training.vertices.end()),
        label_indices_(training.label_indices.begin(), training.label_indices.end()),
        batches_(std::ssize(order_), shape.batch_size),
        stream_{.seed = shape.seed, .purpose = Purpose::kShuffle, .epoch = shape.epoch} {
    ESPALIER_CHECK(label_indices_.empty() || label_indices_.size() == order_.size(),
                   "{} label indices of {} training vertices", label_indices_.size(), order_.size());
    if (shape.groups == nullptr)
      shuffle(0, std::ssize(order_), 0);
    else
      gather(*shape.groups);
  }

  std::int64_t batches() const override { return batches_.count(); }
  std::int64_t count_seeds(std::int64_t begin, std::int64_t end) const override {
    return batches_.begin(end) - batches_.begin(begin);
  }
  SeedBatch batch(std::int64_t k) const override {
    const auto from = batches_.begin(k);
    const auto size = static_cast<std::size_t>(batches_.begin(k + 1) - from);
    return {k, std::span(order_).subspan(from, size),
            label_indices_.empty() ? std::span<const std::int32_t>()
                                   : std::span(label_indices_).subspan(from, size)};
  }
  std::span<const std::int32_t> groups() const override { return batches_.groups(); }

 private:
  void shuffle(std::int64_t begin, std::int64_t end, std::uint64_t row);
  void gather(const BatchGroups& groups);

  Buffer<std::int64_t> order_;
  Buffer<std::int32_t> label_indices_;  // beside order_, or empty
  EpochBatches batches_;
  RandomStream stream_;
};

// Shuffles order_[begin .. end) by draws of `row`. Draws do not depend on swaps: what some of them
// will move is called from memory before the first.
void ShuffledExamples::shuffle(std::int64_t begin, std::int64_t end, std::uint64_t row) {
  auto stream = stream_;
  stream.row = row;
  RandomWords words(stream);
  auto* const order = order_.data() + begin;
  auto* const label_indices = label_indices_.empty() ? nullptr : label_indices_.data() + begin;
  std::array<std::size_t, 32> chosen;
  for (auto left = static_cast<std::size_t>(end - begin); left > 1;) {
    const auto swaps = std::min(chosen.size(), left - 1);
    for (std::size_t k = 0; k < swaps; ++k) {
      chosen[k] = words.next_below(left - k);
      __builtin_prefetch(&order[chosen[k]], 1);
      if (label_indices != nullptr) __builtin_prefetch(&label_indices[chosen[k]], 1);
    }
    for (std::size_t k = 0; k < swaps; ++k) {
      --left;
      std::swap(order[left], order[chosen[k]]);
      if (label_indices != nullptr) std::swap(label_indices[left], label_indices[chosen[k]]);
    }
  }
}

// Seeds group after group, each shuffled; then batch after batch.
void ShuffledExamples::gather(const BatchGroups& groups) {
  ESPALIER_CHECK(groups.of.size() == order_.size(), "groups of {} of {} training vertices", groups.of.size(),
                 order_.size());
  std::vector<std::int64_t> places(order_.size());
  std::iota(places.begin(), places.end(), std::int64_t{0});
  const auto begins =
      begins_of(group_stably(places, groups.count, [&](std::int64_t place) { return groups.of[place]; }));
  const auto take_in_order = [&](auto& list) {
    const auto before = list;
    for (std::size_t k = 0; k < list.size(); ++k) list[k] = before[places[k]];
  };
  take_in_order(order_);
  take_in_order(label_indices_);

  for (std::int32_t group = 0; group < groups.count; ++group)
    shuffle(begins[group], begins[group + 1], static_cast<std::uint64_t>(group) + 1);
  const auto seeds = order_;
  const auto label_indices = label_indices_;
  std::int64_t k = 0;
  for (const auto& batch : batches_.order_by_group(begins, stream_)) {
    const auto to = batches_.begin(k++);
    std::copy(seeds.begin() + batch.begin, seeds.begin() + batch.end, order_.begin() + to);
    if (!label_indices.empty())
      std::copy(label_indices.begin() + batch.begin, label_indices.begin() + batch.end,
                label_indices_.begin() + to);
  }
}

class ExamplesInOrder final : public Examples {
 public:
  ExamplesInOrder(const TrainingVertices& all, std::int64_t batch_size)
      : all_(all), size_(std::max<std::int64_t>(1, batch_size)) {}

  std::int64_t batches() const override { return count_batches(std::ssize(all_.vertices), size_); }
  std::int64_t count_seeds(std::int64_t begin, std::int64_t end) const override {
    return batch_begin(end) - batch_begin(begin);
  }
  SeedBatch batch(std::int64_t k) const override {
    const auto from = static_cast<std::size_t>(batch_begin(k)),
               count = static_cast<std::size_t>(count_seeds(k, k + 1));
    return {k, all_.vertices.subspan(from, count),
            all_.label_indices.empty() ? all_.label_indices : all_.label_indices.subspan(from, count)};
  }

 private:
  std::int64_t batch_begin(std::int64_t k) const { return std::min(k * size_, std::ssize(all_.vertices)); }

  TrainingVertices all_;
  std::int64_t size_;
};

class VertexPartition final : public Examples {
 public:
  VertexPartition(const TrainingVertices& training, const EpochShape& shape)
      : n_(shape.population),
        batches_(count_batches(n_, std::max<std::int64_t>(1, shape.batch_size))),
        training_(training),
        permutation_({.seed = shape.seed, .purpose = Purpose::kShuffle, .epoch = shape.epoch}, n_) {}

  std::int64_t batches() const override { return batches_; }
  std::int64_t count_seeds(std::int64_t begin, std::int64_t end) const override {
    return batch_begin(end) - batch_begin(begin);
  }
  SeedBatch batch(std::int64_t k) const override {
    struct Memory {
      Buffer<std::int64_t> seeds;
      Buffer<std::int32_t> label_indices;
    };
    const auto memory = std::make_shared<Memory>();
    for (auto place = batch_begin(k); place < batch_begin(k + 1); ++place)
      memory->seeds.push_back(permutation_(place));
    std::ranges::sort(memory->seeds);
    if (!training_.label_indices.empty())
      for (auto at = training_.vertices.begin(); const auto v : memory->seeds) {
        at = std::lower_bound(at, training_.vertices.end(), v);
        const bool known = at != training_.vertices.end() && *at == v;
        memory->label_indices.push_back(known ? training_.label_indices[at - training_.vertices.begin()]
                                              : -1);
      }
    return {k, memory->seeds, memory->label_indices, memory};
  }
  std::int64_t population() const override { return n_; }

 private:
  std::int64_t batch_begin(std::int64_t batch) const {
    return static_cast<std::int64_t>(static_cast<__int128>(n_) * batch / batches_);
  }

  std::int64_t n_, batches_;
  TrainingVertices training_;
  KeyedPermutation permutation_;
};

}  // namespace

std::shared_ptr<const Examples> VerticesInOrder::of_epoch(const EpochShape& shape) const {
  return std::make_shared<ExamplesInOrder>(vertices_, shape.batch_size);
}

std::shared_ptr<const Examples> VertexSource::of_epoch(const EpochShape& shape) const {
  if (shape.population > 0) return std::make_shared<VertexPartition>(training_, shape);
  return std::make_shared<ShuffledExamples>(training_, shape);
}

}  // namespace espalier
