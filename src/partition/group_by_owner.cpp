// A stable counting sort by the number of the owner.
#include "espalier/partition/group_by_owner.hpp"

#include <numeric>

#include "espalier/base/search.hpp"
#include "espalier/base/workspace.hpp"

namespace espalier {

template <class From, class Id>
void group_by_owner(const Cpu&, const From* list, std::int64_t count, const SharedList<From>& bounds,
                    OwnerGroups<Id>& groups, int last) {
  struct Owners;
  const auto parts = bounds.size() - 1;
  const auto owner = workspace<Owners, std::int32_t>(count);
  std::vector<std::int64_t> sizes(parts + 1, 0);  // group `parts`: what comes last
  for (std::int64_t k = 0; k < count; ++k) {
    const auto part = segment_of(bounds.data(), parts, list[k]);
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

#define ESPALIER_INSTANTIATE(From, Id)                                                         \
  template void group_by_owner(const Cpu&, const From*, std::int64_t, const SharedList<From>&, \
                               OwnerGroups<Id>&, int);
ESPALIER_INSTANTIATE(std::int32_t, std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t, std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t, std::int64_t)
ESPALIER_INSTANTIATE(std::uint64_t, std::uint64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
