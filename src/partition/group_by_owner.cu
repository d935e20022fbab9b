// A stable radix sort by the number of the owner: few bits, so mostly one pass.
#include "espalier/partition/group_by_owner.hpp"

#include <bit>

#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/base/search.hpp"

namespace espalier {

namespace {

// Whose a point of an axis is.
struct InRanges {
  const std::uint64_t* bounds;
  std::int64_t parts;
  __device__ std::int64_t operator()(std::uint64_t point) const { return segment_of(bounds, parts, point); }
};

// part_of(id), on the device: whose it is.
template <class From, class Id, class PartOf>
void group(const Cuda& cuda, const From* list, std::int64_t count, std::int64_t parts, PartOf part_of,
           OwnerGroups<Id, Cuda>& groups, int last) {
  DeviceArray<std::uint32_t> owners(count), sorted_owners(count);
  DeviceArray<std::int64_t> places(count), begins(parts + 1);
  groups.ids.resize(count);
  groups.order.resize(count);
  auto *const owner = owners.data(), *const sorted = sorted_owners.data();
  auto *const place = places.data(), *const order = groups.order.data(), *const begin = begins.data();
  auto* const ids = groups.ids.data();
  for_each(cuda, "find_owners", count, [=] __device__(std::int64_t k) {
    const auto part = part_of(list[k]);
    owner[k] = static_cast<std::uint32_t>(part == last ? parts : part);
    place[k] = k;
  });
  sort_pairs(cuda, owner, sorted, place, order, count, std::bit_width(static_cast<unsigned>(parts)));
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

}  // namespace

template <class From, class Id>
void group_by_owner(const Cuda& cuda, const From* list, std::int64_t count, const OwnersOn<Cuda>& owners,
                    OwnerGroups<Id, Cuda>& groups, int last) {
  group(cuda, list, count, owners.parts(), owners.owners(), groups, last);
}

void group_by_owner(const Cuda& cuda, const std::uint64_t* list, std::int64_t count,
                    const SharedList<std::uint64_t, Cuda>& bounds, OwnerGroups<std::uint64_t, Cuda>& groups) {
  const auto parts = bounds.size() - 1;
  group(cuda, list, count, parts, InRanges{bounds.data(), parts}, groups, -1);
}

#define ESPALIER_INSTANTIATE(From, Id)                                                        \
  template void group_by_owner(const Cuda&, const From*, std::int64_t, const OwnersOn<Cuda>&, \
                               OwnerGroups<Id, Cuda>&, int);
ESPALIER_INSTANTIATE(std::int32_t, std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t, std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t, std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
