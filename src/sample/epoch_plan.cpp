#include "espalier/sample/epoch_plan.hpp"

#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/sample/draw.hpp"

namespace espalier {

EpochPlan::EpochPlan(std::span<const std::int64_t> training_vertices, std::int64_t batch_size,
                     std::int64_t batches_per_step, int ranks, std::uint64_t seed, std::uint64_t epoch,
                     std::span<const std::int32_t> labels)
    : order_(training_vertices.begin(), training_vertices.end()),
      labels_(labels.begin(), labels.end()),
      batch_size_(std::clamp<std::int64_t>(batch_size, 1, std::max<std::int64_t>(1, std::ssize(order_)))),
      batches_per_step_(std::clamp<std::int64_t>(batches_per_step, 1, std::max<std::int64_t>(1, batches()))),
      ranks_(ranks),
      seed_(seed),
      epoch_(epoch) {
  ESPALIER_CHECK(labels_.empty() || labels_.size() == order_.size(), "{} labels of {} training vertices",
                 labels_.size(), order_.size());
  RandomWords words({.seed = seed, .purpose = Purpose::kShuffle, .epoch = epoch});
  for (auto left = std::ssize(order_); left > 1; --left) {
    const auto chosen = mulhi(words.next(), static_cast<std::uint64_t>(left));
    const auto last = static_cast<std::size_t>(left - 1);
    std::swap(order_[last], order_[chosen]);
    if (!labels_.empty()) std::swap(labels_[last], labels_[chosen]);
  }
}

}  // namespace espalier
