// Owners are found, then the list is sorted by them.
#include "espalier/partition/group_by_owner.hpp"

#include <bit>
#include <numeric>

#include "espalier/base/arrays.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/kernels.hpp"

namespace espalier {

namespace {

// Whose a point of an axis is.
struct InRanges {
  const std::uint64_t* bounds;
  std::int64_t parts;
  ESPALIER_HD std::int64_t operator()(std::uint64_t point) const { return segment_of(bounds, parts, point); }
};

// put(place, k) for every k < count, where the places of an owner's follow one another in the order
// of k: a stable counting sort. How many each has, of owners [0, last].
template <class OwnerOf, class Put>
std::vector<std::int64_t> sort_by_owner(const Cpu&, std::int64_t count, std::int64_t last,
                                        const OwnerOf& owner_of, const Put& put) {
  const auto owners = workspace<struct Owners, std::uint32_t>(count);
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(last) + 1, 0), next(sizes);
  for (std::int64_t k = 0; k < count; ++k) ++sizes[owners[k] = owner_of(k)];
  std::exclusive_scan(sizes.begin(), sizes.end(), next.begin(), std::int64_t{0});
  for (std::int64_t k = 0; k < count; ++k) put(next[owners[k]]++, k);
  return sizes;
}

// On a GPU a stable radix sort: few bits, so mostly one pass. The host waits.
template <class OwnerOf, class Put>
std::vector<std::int64_t> sort_by_owner(const Cuda& cuda, std::int64_t count, std::int64_t last,
                                        const OwnerOf& owner_of, const Put& put) {
  DeviceArray<std::uint32_t> owners(count), sorted_owners(count);
  DeviceArray<std::int64_t> numbers(count), order(count), begins(last + 2);
  auto *const owner = owners.data(), *const sorted = sorted_owners.data();
  auto *const number = numbers.data(), *const number_at = order.data(), *const begin = begins.data();
  for_each(cuda, "find_owners", count, [=] ESPALIER_DEVICE(std::int64_t k) {
    owner[k] = owner_of(k);
    number[k] = k;
  });
  sort_pairs(cuda, owner, sorted, number, number_at, count, std::bit_width(static_cast<std::uint64_t>(last)));
  for_each(cuda, "put_by_owner", count, [=] ESPALIER_DEVICE(std::int64_t j) { put(j, number_at[j]); });
  for_each(cuda, "find_groups", last + 2, [=] ESPALIER_DEVICE(std::int64_t group) {
    begin[group] = count_below(sorted, count, static_cast<std::uint32_t>(group));
  });
  const auto on_host = download(cuda, begins);
  std::vector<std::int64_t> sizes;
  for (std::int64_t group = 0; group <= last; ++group) sizes.push_back(on_host[group + 1] - on_host[group]);
  return sizes;
}

// Of `count` numbers that are in a list at place_of(k) and belong to part_of(k).
template <class From, class Id, class PartOf, class At>
void group(const Space& space, const From* list, std::int64_t count, std::int64_t parts,
           const PartOf& part_of, const At& place_of, OwnerGroups<Id, Space>& groups, int last) {
  groups.ids.resize(count);
  groups.order.resize(count);
  auto* const ids = groups.ids.data();
  auto* const order = groups.order.data();
  groups.counts = sort_by_owner(
      space, count, parts,
      [=] ESPALIER_DEVICE(std::int64_t k) {
        const auto part = static_cast<std::int64_t>(part_of(k));
        return static_cast<std::uint32_t>(part == last ? parts : part);
      },
      [=] ESPALIER_DEVICE(std::int64_t to, std::int64_t k) {
        const auto place = place_of(k);
        ids[to] = static_cast<Id>(list[place]);
        order[to] = place;
      });
  groups.counts.pop_back();  // of `last`
}

// Every number of the list, which is owner_of(number)'s.
template <class From, class Id, class OwnerOf>
void group_all(const Space& space, const From* list, std::int64_t count, std::int64_t parts,
               const OwnerOf& owner_of, OwnerGroups<Id, Space>& groups, int last) {
  group(
      space, list, count, parts,
      [=] ESPALIER_DEVICE(std::int64_t k) { return static_cast<std::int64_t>(owner_of(list[k])); },
      [=] ESPALIER_DEVICE(std::int64_t k) { return k; }, groups, last);
}

}  // namespace

template <class From, class Id>
void group_by_owner(const Space& space, const From* list, std::int64_t count, const OwnersOn<Space>& owners,
                    OwnerGroups<Id, Space>& groups, int last) {
  group_all(space, list, count, owners.parts(), owners.owners(), groups, last);
}

template <class From, class Id>
void group_by_holder(const Space& space, const From* list, std::int64_t count, const HoldersOf& holders,
                     int parts, OwnerGroups<Id, Space>& groups, int last) {
  Array<Space, std::int64_t> sizes(count), begins(count + 1);
  auto *const size = sizes.data(), *const begin = begins.data();
  for_each(space, "count_holders", count,
           [=] ESPALIER_DEVICE(std::int64_t k) { size[k] = count_bits(holders(list[k])); });
  exclusive_sum(space, size, begin, count);
  const auto pieces = read_at(space, begin, std::span(&count, 1))[0];
  Array<Space, std::uint8_t> parts_of_pieces(pieces);
  Array<Space, std::int64_t> places(pieces);
  auto* const part_of = parts_of_pieces.data();
  auto* const place = places.data();
  for_each(space, "find_holders", count, [=] ESPALIER_DEVICE(std::int64_t k) {
    auto at = begin[k];
    for_each_part(holders(list[k]), [&](int part) {
      part_of[at] = static_cast<std::uint8_t>(part);
      place[at++] = k;
    });
  });
  group(
      space, list, pieces, parts, [=] ESPALIER_DEVICE(std::int64_t piece) { return part_of[piece]; },
      [=] ESPALIER_DEVICE(std::int64_t piece) { return place[piece]; }, groups, last);
}

void group_by_owner(const Space& space, const std::uint64_t* list, std::int64_t count,
                    const SharedList<std::uint64_t, Space>& bounds,
                    OwnerGroups<std::uint64_t, Space>& groups) {
  const auto parts = bounds.size() - 1;
  group_all(space, list, count, parts, InRanges{bounds.data(), parts}, groups, -1);
}

#define ESPALIER_INSTANTIATE(From, Id)                                                          \
  template void group_by_owner(const Space&, const From*, std::int64_t, const OwnersOn<Space>&, \
                               OwnerGroups<Id, Space>&, int);                                   \
  template void group_by_holder(const Space&, const From*, std::int64_t, const HoldersOf&, int, \
                                OwnerGroups<Id, Space>&, int);
ESPALIER_INSTANTIATE(std::int32_t, std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t, std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t, std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
