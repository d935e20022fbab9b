// A stable counting sort by the number of the owner.
#include "espalier/partition/group_by_owner.hpp"

#include <numeric>

#include "espalier/base/buffer.hpp"
#include "espalier/base/host_device.hpp"

namespace espalier {

namespace {

// part_of(id): whose it is.
template <class From, class Id, class PartOf>
void group(const From* list, std::int64_t count, std::int64_t parts, PartOf part_of, OwnerGroups<Id>& groups,
           int last) {
  struct Owners;
  const auto owner = workspace<Owners, std::int32_t>(count);
  std::vector<std::int64_t> sizes(parts + 1, 0);  // group `parts`: what comes last
  for (std::int64_t k = 0; k < count; ++k) {
    const auto part = static_cast<std::int64_t>(part_of(list[k]));
    owner[k] = static_cast<std::int32_t>(part == last ? parts : part);
    ++sizes[owner[k]];
  }
  std::vector<std::int64_t> next(parts + 1);
  std::exclusive_scan(sizes.begin(), sizes.end(), next.begin(), std::int64_t{0});
  groups.ids.resize(count);
  groups.order.resize(count);
  for (std::int64_t k = 0; k < count; ++k) {
    const auto place = next[owner[k]]++;
    groups.ids[place] = static_cast<Id>(list[k]);
    groups.order[place] = k;
  }
  sizes.pop_back();
  groups.counts = std::move(sizes);
}

}  // namespace

template <class From, class Id>
void group_by_owner(const Cpu&, const From* list, std::int64_t count, const OwnersOn<Cpu>& owners,
                    OwnerGroups<Id>& groups, int last) {
  group(list, count, owners.parts(), owners.owners(), groups, last);
}

template <class From, class Id>
void group_by_holder(const Cpu&, const From* list, std::int64_t count, const HoldersOf& holders, int parts,
                     OwnerGroups<Id>& groups, int last) {
  std::vector<std::int64_t> sizes(parts + 1, 0);  // group `parts`: what comes last
  const auto group_of = [&](int part) { return part == last ? parts : part; };
  for (std::int64_t k = 0; k < count; ++k)
    for_each_part(holders(list[k]), [&](int part) { ++sizes[group_of(part)]; });
  std::vector<std::int64_t> next(parts + 1);
  std::exclusive_scan(sizes.begin(), sizes.end(), next.begin(), std::int64_t{0});
  groups.ids.resize(next.back() + sizes.back());
  groups.order.resize(groups.ids.size());
  for (std::int64_t k = 0; k < count; ++k)
    for_each_part(holders(list[k]), [&](int part) {
      const auto place = next[group_of(part)]++;
      groups.ids[place] = static_cast<Id>(list[k]);
      groups.order[place] = k;
    });
  sizes.pop_back();
  groups.counts = std::move(sizes);
}

void group_by_owner(const Cpu&, const std::uint64_t* list, std::int64_t count,
                    const SharedList<std::uint64_t>& bounds, OwnerGroups<std::uint64_t>& groups) {
  const auto parts = bounds.size() - 1;
  const auto part_of = [&](std::uint64_t point) { return segment_of(bounds.data(), parts, point); };
  group(list, count, parts, part_of, groups, -1);
}

#define ESPALIER_INSTANTIATE(From, Id)                                                        \
  template void group_by_owner(const Cpu&, const From*, std::int64_t, const OwnersOn<Cpu>&,   \
                               OwnerGroups<Id>&, int);                                        \
  template void group_by_holder(const Cpu&, const From*, std::int64_t, const HoldersOf&, int, \
                                OwnerGroups<Id>&, int);
ESPALIER_INSTANTIATE(std::int32_t, std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t, std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t, std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
