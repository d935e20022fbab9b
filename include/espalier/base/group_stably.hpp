// A stable counting sort by a small number: the rank or the part that something goes to.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace espalier {

/// Puts those of part 0 first, then those of part 1, .., each in the order in which they were.
/// part_of(element) in [0, parts). How many there are of each part.
template <class List, class PartOf>
std::vector<std::int64_t> group_stably(List& list, std::int64_t parts, const PartOf& part_of) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(parts), 0), next(counts);
  for (const auto& element : list) ++counts[part_of(element)];
  std::exclusive_scan(counts.begin(), counts.end(), next.begin(), std::int64_t{0});
  List grouped(list.size());
  for (const auto& element : list) grouped[next[part_of(element)]++] = element;
  list = std::move(grouped);
  return counts;
}

}  // namespace espalier
