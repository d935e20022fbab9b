// A stable counting sort by the number of the owner.
#include "espalier/partition/group_by_owner.hpp"

#include <numeric>

#include "espalier/base/search.hpp"
#include "espalier/base/workspace.hpp"

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
void group_by_owner(const Cpu&, const From* list, std::int64_t count, const SharedList<From>& bounds,
                    OwnerGroups<Id>& groups, int last) {
  const auto parts = bounds.size() - 1;
  group(
      list, count, parts, [&](From id) { return segment_of(bounds.data(), parts, id); }, groups, last);
}

template <class Id>
void group_by_owner(const Cpu& cpu, const std::int64_t* list, std::int64_t count, const OwnersOn<Cpu>& owners,
                    OwnerGroups<Id>& groups, int last) {
  if (!owners.is_map()) return group_by_owner(cpu, list, count, owners.bounds, groups, last);
  group(
      list, count, owners.parts(), [owner = owners.owner.data()](std::int64_t id) { return owner[id]; },
      groups, last);
}
template void group_by_owner(const Cpu&, const std::int64_t*, std::int64_t, const OwnersOn<Cpu>&,
                             OwnerGroups<std::int32_t>&, int);
template void group_by_owner(const Cpu&, const std::int64_t*, std::int64_t, const OwnersOn<Cpu>&,
                             OwnerGroups<std::int64_t>&, int);

#define ESPALIER_INSTANTIATE(From, Id)                                                         \
  template void group_by_owner(const Cpu&, const From*, std::int64_t, const SharedList<From>&, \
                               OwnerGroups<Id>&, int);
ESPALIER_INSTANTIATE(std::int32_t, std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t, std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t, std::int64_t)
ESPALIER_INSTANTIATE(std::uint64_t, std::uint64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
