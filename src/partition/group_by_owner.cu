// A stable radix sort by the number of the owner: few bits, so mostly one pass.
#include "espalier/partition/group_by_owner.hpp"

#include <bit>

#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

namespace {

/// How many of the ascending `values` [count] are less than x (with `or_equal`: at most x).
template <class T>
__device__ std::int64_t count_below(const T* values, std::int64_t count, T x, bool or_equal) {
  std::int64_t low = 0, high = count;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (values[middle] < x || (or_equal && values[middle] == x))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace

void group_by_owner(const Cuda& cuda, const std::int64_t* list, std::int64_t count,
                    const std::int64_t* offsets, int parts, int last, OwnerGroups& groups) {
  const auto size = static_cast<std::size_t>(count);
  groups.ids.resize(size);
  groups.order.resize(size);
  groups.begin.resize(static_cast<std::size_t>(parts) + 2);
  groups.owner.resize(size);
  groups.sorted_owner.resize(size);
  groups.place.resize(size);
  auto *const ids = groups.ids.data(), *const order = groups.order.data(), *const begin = groups.begin.data(),
              *const place = groups.place.data();
  auto *const owner = groups.owner.data(), *const sorted = groups.sorted_owner.data();
  for_each(cuda, "find_owners", count, [=] __device__(std::int64_t k) {
    const auto part = static_cast<int>(count_below(offsets, std::int64_t{parts} + 1, list[k], true)) - 1;
    owner[k] = static_cast<std::uint32_t>(part == last ? parts : part);
    place[k] = k;
  });
  sort_pairs(cuda, owner, sorted, place, order, count, std::bit_width(static_cast<unsigned>(parts)));
  for_each(cuda, "take_grouped_ids", count, [=] __device__(std::int64_t j) { ids[j] = list[order[j]]; });
  for_each(cuda, "find_groups", parts + 2, [=] __device__(std::int64_t group) {
    begin[group] = count_below(sorted, count, static_cast<std::uint32_t>(group), false);
  });
}

}  // namespace espalier
