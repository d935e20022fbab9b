// A stable radix sort by the number of the owner: few bits, so mostly one pass.
#include "espalier/partition/group_by_owner.hpp"

#include <bit>

#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

namespace {

// Whose a point of an axis is.
struct InRanges {
  const std::uint64_t* bounds;
  std::int64_t parts;
  __device__ std::int64_t operator()(std::uint64_t point) const { return segment_of(bounds, parts, point); }
};

// Number places[k] of the list goes to part owners[k], or comes last; `count` of both.
template <class From, class Id>
void sort_by_owner(const Cuda& cuda, const From* list, const DeviceArray<std::uint32_t>& owners,
                   const DeviceArray<std::int64_t>& places, std::int64_t parts,
                   OwnerGroups<Id, Cuda>& groups) {
  const auto count = static_cast<std::int64_t>(owners.size());
  DeviceArray<std::uint32_t> sorted_owners(count);
  DeviceArray<std::int64_t> begins(parts + 1);
  groups.ids.resize(count);
  groups.order.resize(count);
  auto* const sorted = sorted_owners.data();
  auto *const order = groups.order.data(), *const begin = begins.data();
  auto* const ids = groups.ids.data();
  sort_pairs(cuda, owners.data(), sorted, places.data(), order, count,
             std::bit_width(static_cast<unsigned>(parts)));
  for_each(cuda, "take_grouped_ids", count,
           [=] __device__(std::int64_t j) { ids[j] = static_cast<Id>(list[order[j]]); });
  for_each(cuda, "find_groups", parts + 1, [=] __device__(std::int64_t part) {
    begin[part] = count_below(sorted, count, static_cast<std::uint32_t>(part));
  });
  const auto on_host = download(cuda, begins);
  groups.counts.clear();
  for (std::int64_t part = 0; part < parts; ++part)
    groups.counts.push_back(on_host[part + 1] - on_host[part]);
}

// part_of(id), on the device: whose it is.
template <class From, class Id, class PartOf>
void group(const Cuda& cuda, const From* list, std::int64_t count, std::int64_t parts, PartOf part_of,
           OwnerGroups<Id, Cuda>& groups, int last) {
  DeviceArray<std::uint32_t> owners(count);
  DeviceArray<std::int64_t> places(count);
  auto* const owner = owners.data();
  auto* const place = places.data();
  for_each(cuda, "find_owners", count, [=] __device__(std::int64_t k) {
    const auto part = part_of(list[k]);
    owner[k] = static_cast<std::uint32_t>(part == last ? parts : part);
    place[k] = k;
  });
  sort_by_owner(cuda, list, owners, places, parts, groups);
}

}  // namespace

template <class From, class Id>
void group_by_owner(const Cuda& cuda, const From* list, std::int64_t count, const OwnersOn<Cuda>& owners,
                    OwnerGroups<Id, Cuda>& groups, int last) {
  group(cuda, list, count, owners.parts(), owners.owners(), groups, last);
}

template <class From, class Id>
void group_by_holder(const Cuda& cuda, const From* list, std::int64_t count, const HoldersOf& holders,
                     int parts, OwnerGroups<Id, Cuda>& groups, int last) {
  DeviceArray<std::int64_t> sizes(count), begins(count + 1);
  auto *const size = sizes.data(), *const begin = begins.data();
  for_each(cuda, "count_holders", count,
           [=] __device__(std::int64_t k) { size[k] = __popcll(holders(list[k])); });
  exclusive_sum(cuda, size, begin, count);
  const auto pieces = download(cuda, begin + count, 1)[0];
  DeviceArray<std::uint32_t> owners(pieces);
  DeviceArray<std::int64_t> places(pieces);
  auto* const owner = owners.data();
  auto* const place = places.data();
  for_each(cuda, "find_holders", count, [=] __device__(std::int64_t k) {
    auto at = begin[k];
    for (auto set = holders(list[k]); set != 0; set &= set - 1, ++at) {
      const int part = __ffsll(static_cast<long long>(set)) - 1;
      owner[at] = static_cast<std::uint32_t>(part == last ? parts : part);
      place[at] = k;
    }
  });
  sort_by_owner(cuda, list, owners, places, parts, groups);
}

void group_by_owner(const Cuda& cuda, const std::uint64_t* list, std::int64_t count,
                    const SharedList<std::uint64_t, Cuda>& bounds, OwnerGroups<std::uint64_t, Cuda>& groups) {
  const auto parts = bounds.size() - 1;
  group(cuda, list, count, parts, InRanges{bounds.data(), parts}, groups, -1);
}

#define ESPALIER_INSTANTIATE(From, Id)                                                         \
  template void group_by_owner(const Cuda&, const From*, std::int64_t, const OwnersOn<Cuda>&,  \
                               OwnerGroups<Id, Cuda>&, int);                                   \
  template void group_by_holder(const Cuda&, const From*, std::int64_t, const HoldersOf&, int, \
                                OwnerGroups<Id, Cuda>&, int);
ESPALIER_INSTANTIATE(std::int32_t, std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t, std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t, std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
