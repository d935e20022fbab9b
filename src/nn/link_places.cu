// Stable sorts by what a member names; where lists begin is searched in the sorted names.
#include "espalier/nn/link_places.hpp"

#include <bit>

#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/dense/column_sums.hpp"

namespace espalier {

namespace {

/// Members 0 .. count - 1 by their list; list_of is a __device__ function.
template <class ListOf>
void sort_into_lists(const Cuda& cuda, std::int64_t count, std::int64_t lists, const ListOf& list_of,
                     ListsOn<Cuda>& sorted) {
  const auto size = static_cast<std::size_t>(count);
  sorted.begins.resize(static_cast<std::size_t>(lists) + 1);
  sorted.members.resize(size);
  DeviceArray<std::uint32_t> keys(size), sorted_keys(size);
  DeviceArray<std::int32_t> members(size);
  auto* const key = keys.data();
  auto* const member = members.data();
  for_each(cuda, "name lists of links", count, [=] __device__(std::int64_t k) {
    key[k] = static_cast<std::uint32_t>(list_of(k));
    member[k] = static_cast<std::int32_t>(k);
  });
  if (count > 0)
    sort_pairs(cuda, keys.data(), sorted_keys.data(), members.data(), sorted.members.data(), count,
               std::bit_width(static_cast<std::uint64_t>(lists)));
  const auto* const names = sorted_keys.data();
  auto* const begins = sorted.begins.data();
  for_each(cuda, "begin lists of links", lists + 1, [=] __device__(std::int64_t list) {
    begins[list] = count_below(names, count, static_cast<std::uint32_t>(list));
  });
}

}  // namespace

void find_link_places(const Cuda& cuda, const LinksView& links, std::int64_t rows, std::int64_t relations,
                      LinkPlacesOn<Cuda>& places) {
  ESPALIER_CHECK(links.count < std::int64_t{1} << 30, "{} links", links.count);
  sort_into_lists(
      cuda, 2 * links.count, rows, [=] __device__(std::int64_t use) { return links.row_of_use(use); },
      places.by_row);
  if (relations == 0) return;
  sort_into_lists(
      cuda, links.count, relations, [=] __device__(std::int64_t i) { return links.relation(i); },
      places.by_relation);
  places.chunks_before.resize(static_cast<std::size_t>(relations) + 1);
  DeviceArray<std::int64_t> chunks(static_cast<std::size_t>(relations));
  const auto* const begins = places.by_relation.begins.data();
  auto* const of = chunks.data();
  for_each(cuda, "chunks of relations", relations, [=] __device__(std::int64_t r) {
    of[r] = (begins[r + 1] - begins[r] + kSummedRows - 1) / kSummedRows;
  });
  exclusive_sum(cuda, chunks.data(), places.chunks_before.data(), relations);
}

}  // namespace espalier
