#include "espalier/sample/epoch_plan.hpp"

#include <array>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/sample/draw.hpp"

namespace espalier {

EpochPlan::EpochPlan(std::span<const std::int64_t> training_vertices, std::int64_t batch_size,
                     std::int64_t batches_per_step, int ranks, std::uint64_t seed, std::uint64_t epoch,
                     std::span<const std::int32_t> tags)
    : order_(training_vertices.begin(), training_vertices.end()),
      tags_(tags.begin(), tags.end()),
      batch_size_(std::clamp<std::int64_t>(batch_size, 1, std::max<std::int64_t>(1, std::ssize(order_)))),
      batches_per_step_(std::clamp<std::int64_t>(batches_per_step, 1, std::max<std::int64_t>(1, batches()))),
      ranks_(ranks),
      seed_(seed),
      epoch_(epoch) {
  ESPALIER_CHECK(tags_.empty() || tags_.size() == order_.size(), "{} tags of {} training vertices",
                 tags_.size(), order_.size());
  // Draws do not depend on swaps: what some of them will move is called from memory before
  // the first.
  RandomWords words({.seed = seed, .purpose = Purpose::kShuffle, .epoch = epoch});
  std::array<std::size_t, 32> chosen;
  for (auto left = order_.size(); left > 1;) {
    const auto swaps = std::min(chosen.size(), left - 1);
    for (std::size_t k = 0; k < swaps; ++k) {
      chosen[k] = mulhi(words.next(), left - k);
      __builtin_prefetch(&order_[chosen[k]], 1);
      if (!tags_.empty()) __builtin_prefetch(&tags_[chosen[k]], 1);
    }
    for (std::size_t k = 0; k < swaps; ++k) {
      --left;
      std::swap(order_[left], order_[chosen[k]]);
      if (!tags_.empty()) std::swap(tags_[left], tags_[chosen[k]]);
    }
  }
}

}  // namespace espalier
