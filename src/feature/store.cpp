// A fetch on the CPU.
#include "store.inl.hpp"

#include <algorithm>

namespace espalier {

void concatenate(const Cpu&, IdLists lists, std::int64_t* all) {
  for (const auto& list : lists) all = std::copy(list.begin(), list.end(), all);
}

template <class Id>
void find_sources(const Cpu&, const OwnerGroups<Id>& groups, std::int64_t others, std::int64_t first_row,
                  std::int64_t* source) {
  for (std::int64_t j = 0; j < others; ++j) source[groups.order[j]] = j;
  for (std::int64_t j = others; j < groups.size(); ++j)
    source[groups.order[j]] = ~(groups.ids[j] - first_row);
}

template class FeatureStoreOn<Cpu>;

}  // namespace espalier
