// Which of several lists, one under the other, an item stands in.
#pragma once

#include <cstdint>

#include "espalier/base/host_device.hpp"

namespace espalier {

/// The g with offsets[g] <= item < offsets[g + 1]; offsets [groups + 1] ascend from 0 to more than `item`.
ESPALIER_HD inline std::int64_t group_of(const std::int64_t* offsets, std::int64_t groups,
                                         std::int64_t item) {
  std::int64_t low = 0, high = groups;
  while (high - low > 1) {
    const auto middle = low + (high - low) / 2;
    if (offsets[middle] <= item)
      low = middle;
    else
      high = middle;
  }
  return low;
}

}  // namespace espalier
