// How an epoch's examples are cut into batches, also of groups (espalier/sample/examples.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "espalier/base/philox.hpp"
#include "espalier/sample/examples.hpp"

namespace espalier {

struct GroupBatch {
  std::uint64_t time;  ///< in the epoch, [0, 2^64)
  std::int32_t group;
  std::int64_t begin, end;  ///< of its examples, group after group
};

/// Where the examples of each batch begin, of all that stand batch after batch.
class EpochBatches {
 public:
  EpochBatches(std::int64_t examples, std::int64_t batch_size)
      : examples_(examples),
        size_(std::clamp<std::int64_t>(batch_size, 1, std::max<std::int64_t>(1, examples))) {}

  std::int64_t count() const {
    return begins_.empty() ? count_batches(examples_, size_) : std::ssize(begins_) - 1;
  }
  std::int64_t begin(std::int64_t batch) const {
    return begins_.empty() ? std::min(batch * size_, examples_) : begins_[batch];
  }
  /// [batches] the group of each; empty: of none.
  std::span<const std::int32_t> groups() const& { return groups_; }
  void groups() const&& = delete;

  /// From now on they are of groups with the examples begins[g] .. begins[g + 1): batches in order.
  std::vector<GroupBatch> order_by_group(std::span<const std::int64_t> begins, const RandomStream& epoch);

 private:
  std::int64_t examples_, size_;
  std::vector<std::int64_t> begins_;  // [batches + 1] with groups
  std::vector<std::int32_t> groups_;
};

}  // namespace espalier
