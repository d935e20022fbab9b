// The order of an epoch's batches where they are of groups (espalier/sample/examples.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace espalier {

struct GroupBatch {
  std::uint64_t time;  ///< in the epoch, [0, 2^64)
  std::int32_t group;
  std::int64_t begin, end;  ///< of its examples, group after group
};

/// The batches of groups that have the examples begins[g] .. begins[g + 1), in their order.
std::vector<GroupBatch> order_group_batches(std::span<const std::int64_t> begins, std::int64_t batch_size,
                                            std::uint64_t seed, std::uint64_t epoch);

}  // namespace espalier
