// One epoch: the training vertices shuffled and cut into batches, and which rank keeps which batch.
//
// The shuffle is Fisher-Yates with counter-based draws of (seed, epoch), so batch b of an epoch
// holds the same vertices on every grid. A step averages `batches_per_step` = S consecutive
// batches; batch b is kept by rank (b mod S) mod p. The last batch may be short, the last step may
// have fewer batches, and with S < p some ranks keep none: nobody waits for them.
//
// With groups (sampler.batches = "local") the seeds of a batch are of one group, which is shuffled
// by itself and cut into batches as even as can be, at most `batch_size` each. Groups close in
// number have neighbouring vertices. Consecutive batches are of groups spread over all of them:
//
//     batch j of the n of group g comes in the order of (j + u_g) / n,
//     u_g = the bits of g reversed behind the point, all turned by one draw of the epoch
//
// so that S batches are of S different groups, evenly spread, or with S >= G of every group
// equally often: a stratified step. Of a step's batches in the order of their groups, ranks
// keep equal stretches: rank r keeps what belongs to the r-th part of an order. Batches do not
// depend on ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/graph/content_digest.hpp"

namespace espalier {

/// How many batches of `size` (>= 1) `items` make, the last one possibly short.
inline std::int64_t count_batches(std::int64_t items, std::int64_t size) {
  return items / size + (items % size != 0 ? 1 : 0);
}

/// Training vertices in groups that are close in the graph.
struct BatchGroups {
  Buffer<std::int32_t> of;  ///< of each training vertex, in their order: 0 .. count - 1
  std::int32_t count = 1;

  std::uint64_t digest() const { return content_digest(std::span<const std::int32_t>(of), 0); }
};

class EpochPlan {
 public:
  /// `tags`: none, or a number beside each of the training vertices, which is shuffled with it.
  /// `groups`: null, or those of the batches.
  EpochPlan(std::span<const std::int64_t> training_vertices, std::int64_t batch_size,
            std::int64_t batches_per_step, int ranks, std::uint64_t seed, std::uint64_t epoch,
            std::span<const std::int32_t> tags = {}, const BatchGroups* groups = nullptr);

  std::uint64_t seed() const { return seed_; }
  std::uint64_t epoch() const { return epoch_; }
  std::int64_t batches() const {
    return begins_.empty() ? count_batches(std::ssize(order_), batch_size_) : std::ssize(begins_) - 1;
  }
  std::int64_t steps() const { return count_batches(batches(), batches_per_step_); }
  std::int64_t step_begin(std::int64_t step) const { return step * batches_per_step_; }
  std::int64_t step_end(std::int64_t step) const {
    return std::min((step + 1) * batches_per_step_, batches());
  }
  int rank_of(std::int64_t batch) const {
    return keepers_.empty() ? static_cast<int>(batch % batches_per_step_ % ranks_) : keepers_[batch];
  }

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
    const auto from = batch_begin(begin), to = batch_begin(end);
    return {all.data() + from, static_cast<std::size_t>(to - from)};
  }

  // Where the seeds of a batch begin.
  std::int64_t batch_begin(std::int64_t batch) const {
    return begins_.empty() ? std::min(batch * batch_size_, std::ssize(order_)) : begins_[batch];
  }
  void shuffle(std::int64_t begin, std::int64_t end, std::uint64_t row);
  void gather(const BatchGroups& groups);
  void deal(const std::vector<std::int32_t>& group_of_batch);

  Buffer<std::int64_t> order_;
  Buffer<std::int32_t> tags_;  ///< beside order_, or empty
  std::int64_t batch_size_;
  std::int64_t batches_per_step_;
  int ranks_;
  std::uint64_t seed_;
  std::uint64_t epoch_;
  std::vector<std::int64_t> begins_;   ///< [batches + 1] with groups
  std::vector<std::int32_t> keepers_;  ///< [batches] with groups
};

}  // namespace espalier
