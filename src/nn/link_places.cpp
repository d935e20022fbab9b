// Counting sorts by one thread: two passes over a few numbers of each link.
#include "espalier/nn/link_places.hpp"

#include <algorithm>
#include <numeric>

#include "espalier/base/buffer.hpp"
#include "espalier/base/error.hpp"
#include "espalier/dense/column_sums.hpp"

namespace espalier {

namespace {

/// Members 0 .. count - 1 by their list.
template <class ListOf>
void sort_into_lists(std::int64_t count, std::int64_t lists, const ListOf& list_of, ListsOn<Cpu>& sorted) {
  auto& begins = sorted.begins;
  begins.assign(static_cast<std::size_t>(lists) + 1, 0);
  sorted.members.resize(static_cast<std::size_t>(count));
  for (std::int64_t member = 0; member < count; ++member) {
    const std::int64_t list = list_of(member);
    ESPALIER_CHECK(0 <= list && list < lists, "a link names {} of {}", list, lists);
    ++begins[list + 1];
  }
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  const auto next = workspace<struct NextMembers, std::int64_t>(static_cast<std::size_t>(lists));
  std::copy_n(begins.begin(), lists, next.begin());
  for (std::int64_t member = 0; member < count; ++member)
    sorted.members[next[list_of(member)]++] = static_cast<std::int32_t>(member);
}

}  // namespace

void find_link_places(const Cpu&, const LinksView& links, std::int64_t rows, std::int64_t relations,
                      LinkPlaces& places) {
  ESPALIER_CHECK(links.count < std::int64_t{1} << 30, "{} links", links.count);
  sort_into_lists(
      2 * links.count, rows, [&](std::int64_t use) { return links.row_of_use(use); }, places.by_row);
  if (relations == 0) return;
  sort_into_lists(
      links.count, relations, [&](std::int64_t i) { return links.relation(i); }, places.by_relation);
  const auto& begins = places.by_relation.begins;
  places.chunks_before.assign(begins.size(), 0);
  for (std::int64_t r = 0; r < relations; ++r)
    places.chunks_before[r + 1] =
        places.chunks_before[r] + (begins[r + 1] - begins[r] + kSummedRows - 1) / kSummedRows;
}

}  // namespace espalier
