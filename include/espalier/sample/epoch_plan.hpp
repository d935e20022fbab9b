// One epoch: the training vertices shuffled and cut into batches, and which rank keeps which batch.
//
// The shuffle is Fisher-Yates with counter-based draws of (seed, epoch), so batch b of an epoch
// holds the same vertices on every grid. A step averages `batches_per_step` = S consecutive
// batches; batch b is kept by rank (b mod S) mod p. The last batch may be short, the last step may
// have fewer batches, and with S < p some ranks keep none: nobody waits for them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "espalier/base/buffer.hpp"

namespace espalier {

/// How many batches of `size` (>= 1) `items` make, the last one possibly short.
inline std::int64_t count_batches(std::int64_t items, std::int64_t size) {
  return items / size + (items % size != 0 ? 1 : 0);
}

class EpochPlan {
 public:
  /// `tags`: none, or a number beside each of the training vertices, which is shuffled with it.
  EpochPlan(std::span<const std::int64_t> training_vertices, std::int64_t batch_size,
            std::int64_t batches_per_step, int ranks, std::uint64_t seed, std::uint64_t epoch,
            std::span<const std::int32_t> tags = {});

  std::uint64_t seed() const { return seed_; }
  std::uint64_t epoch() const { return epoch_; }
  std::int64_t batches() const { return count_batches(std::ssize(order_), batch_size_); }
  std::int64_t steps() const { return count_batches(batches(), batches_per_step_); }
  std::int64_t step_begin(std::int64_t step) const { return step * batches_per_step_; }
  std::int64_t step_end(std::int64_t step) const {
    return std::min((step + 1) * batches_per_step_, batches());
  }
  int rank_of(std::int64_t batch) const { return static_cast<int>(batch % batches_per_step_ % ranks_); }

  /// The seeds of a batch.
  std::span<const std::int64_t> seeds(std::int64_t batch) const { return seeds(batch, batch + 1); }
  /// The seeds of batches [begin, end), one batch after another.
  std::span<const std::int64_t> seeds(std::int64_t begin, std::int64_t end) const {
    return part_of(order_, begin, end);
  }
  /// The tags beside the seeds of a batch, or of batches [begin, end). The plan must have been made
  /// with tags.
  std::span<const std::int32_t> tags(std::int64_t batch) const { return tags(batch, batch + 1); }
  std::span<const std::int32_t> tags(std::int64_t begin, std::int64_t end) const {
    return part_of(tags_, begin, end);
  }

 private:
  template <class T>
  std::span<const T> part_of(const Buffer<T>& all, std::int64_t begin, std::int64_t end) const {
    const auto from = begin * batch_size_,
               to = std::min(end * batch_size_, static_cast<std::int64_t>(all.size()));
    return {all.data() + from, static_cast<std::size_t>(to - from)};
  }

  Buffer<std::int64_t> order_;
  Buffer<std::int32_t> tags_;  ///< beside order_, or empty
  std::int64_t batch_size_;
  std::int64_t batches_per_step_;
  int ranks_;
  std::uint64_t seed_;
  std::uint64_t epoch_;
};

}  // namespace espalier
