#include "espalier/sample/type_runs.hpp"

namespace espalier {

std::vector<std::int64_t> count_below(const Cpu&, std::span<const std::span<const std::int64_t>> lists,
                                      const SharedList<std::int64_t>& ends) {
  std::vector<std::int64_t> counts;
  for (const auto& list : lists)
    for (const auto end : ends.host()) counts.push_back(std::ranges::lower_bound(list, end) - list.begin());
  return counts;
}

}  // namespace espalier
