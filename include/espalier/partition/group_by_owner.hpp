// Ids grouped by the part that owns them, on a GPU: how a list becomes the pieces of an all-to-all-v.
#pragma once

#include <cstdint>

#include "espalier/base/device_array.hpp"

namespace espalier {

/// A list of ids, part after part, in the order of the list within a part.
struct OwnerGroups {
  DeviceArray<std::int64_t> ids;    ///< [count]
  DeviceArray<std::int64_t> order;  ///< [count] ids[j] is number order[j] of the list
  DeviceArray<std::int64_t>
      begin;  ///< [parts + 2] where the ids of a part begin; number `parts`: of the last one
  DeviceArray<std::uint32_t> owner, sorted_owner;  ///< [count] scratch, and the group of each of `ids`
  DeviceArray<std::int64_t> place;                 ///< [count] scratch
};

/// Groups `list` [count] by owner; the ids of part `last` (-1: of none) come after all others, and its own group is
/// empty. offsets [parts + 1]: of the RowPartition. All are device memory; asynchronous.
void group_by_owner(const Cuda& cuda, const std::int64_t* list, std::int64_t count,
                    const std::int64_t* offsets, int parts, int last, OwnerGroups& groups);

}  // namespace espalier
