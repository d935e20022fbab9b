// Binary searches of ascending lists, the same on CPU and GPU.
#pragma once

#include <cstdint>

#include "espalier/base/host_device.hpp"

namespace espalier {

/// How many of the ascending values sorted[0 .. count) are less than `bound`.
template <class T>
ESPALIER_HD inline std::int64_t count_below(const T* sorted, std::int64_t count, T bound) {
  std::int64_t begin = 0;
  while (count > 0) {
    const std::int64_t half = count / 2;
    const bool below = sorted[begin + half] < bound;
    begin = below ? begin + half + 1 : begin;
    count = below ? count - half - 1 : half;
  }
  return begin;
}

/// The segment that `item` lies in: segment s has the items offsets[s] .. offsets[s+1], and empty
/// ones are passed over. offsets [segments + 1], anything with operator[], ascends from at most
/// `item` to more than `item`.
template <class Offsets, class Item>
ESPALIER_HD inline std::int64_t segment_of(const Offsets& offsets, std::int64_t segments, Item item) {
  std::int64_t low = 0, high = segments;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    if (offsets[middle] <= item)
      low = middle;
    else
      high = middle;
  }
  return low;
}

}  // namespace espalier
