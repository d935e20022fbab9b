// Laws of a grouping by owner, for every space: the parts in their order, the order of the list
// within a part, `last` after all others and not counted; every width of ids; of holders each that
// an id has. The oracle looks for
// each part's ids in the whole list.
#pragma once

#include <gtest/gtest.h>

#include <limits>

#include "espalier/base/philox.hpp"
#include "espalier/partition/group_by_owner.hpp"
#include "mpi_test.hpp"
#include "space_arrays.hpp"

namespace espalier {

template <class Id>
struct HostGroups {
  Buffer<Id> ids;
  Buffer<std::int64_t> order;
  std::vector<std::int64_t> counts;

  bool operator==(const HostGroups&) const = default;
};

/// `groups` is used again, as programs do.
template <class From, class Id, class Space>
HostGroups<Id> grouped(const Space& space, const std::vector<From>& bounds, const Buffer<From>& list,
                       int last, OwnerGroups<Id, Space>& groups) {
  const auto on_space = array_on(space, list);
  if constexpr (std::is_same_v<From, std::uint64_t>) {
    group_by_owner(space, on_space.data(), std::ssize(list), SharedList<From, Space>(space, bounds), groups);
  } else {
    const RowPartition ranges({bounds.begin(), bounds.end()});
    group_by_owner(space, on_space.data(), std::ssize(list), OwnersOn<Space>(space, ranges), groups, last);
  }
  EXPECT_EQ(groups.size(), std::ssize(list));
  return {array_from(space, groups.ids), array_from(space, groups.order), groups.counts};
}

template <class Id, class From>
HostGroups<Id> expected_groups(const std::vector<From>& bounds, const Buffer<From>& list, int last) {
  HostGroups<Id> expected;
  const auto take = [&](int part) {
    std::int64_t count = 0;
    for (std::int64_t k = 0; k < std::ssize(list); ++k) {
      if (list[k] < bounds[part] || list[k] >= bounds[part + 1]) continue;
      expected.ids.push_back(static_cast<Id>(list[k]));
      expected.order.push_back(k);
      ++count;
    }
    return count;
  };
  const int parts = static_cast<int>(bounds.size()) - 1;
  for (int part = 0; part < parts; ++part) expected.counts.push_back(part == last ? 0 : take(part));
  if (last >= 0) take(last);
  return expected;
}

template <class From, class Id, class Space>
void expect_groups(const Space& space, const std::vector<From>& bounds, const Buffer<From>& list) {
  OwnerGroups<Id, Space> groups;
  const int lasts = std::is_same_v<From, std::uint64_t> ? 0 : static_cast<int>(bounds.size()) - 1;
  for (int last = -1; last < lasts; ++last)
    EXPECT_EQ(grouped(space, bounds, list, last, groups), expected_groups<Id>(bounds, list, last))
        << list.size() << " ids, " << bounds.size() - 1 << " parts, last " << last;
}

/// Parts of random sizes, every third of them empty, the first and the last too. Random ids, some
/// of them twice.
template <class From, class Id, class Space>
void check_random_groups(const Space& space) {
  for (const int parts : {1, 2, 7, 40})
    for (const std::int64_t count : {0, 1, 5, 1000}) {
      const RandomStream stream = {.seed = test_seed(6),
                                   .batch = static_cast<std::uint64_t>(parts),
                                   .row = static_cast<std::uint64_t>(count)};
      std::vector<From> bounds = {0};
      for (int part = 0; part < parts; ++part)
        bounds.push_back(bounds.back() +
                         (part % 3 == 0 && parts > 1 ? 0 : random_below(stream, part, 30) + 1));
      Buffer<From> list;
      for (std::int64_t k = 0; k < count; ++k) list.push_back(random_below(stream, 1000 + k, bounds.back()));
      SCOPED_TRACE(testing::Message() << "seed " << stream.seed);
      expect_groups<From, Id>(space, bounds, list);
    }
}

/// Ids next to bounds, up to the largest that each width has.
template <class Space>
void check_groups_of_large_ids(const Space& space) {
  constexpr std::int64_t kWide = std::int64_t{1} << 31;
  expect_groups<std::int64_t, std::int32_t>(space, {0, kWide - 2, kWide},
                                            {kWide - 1, 5, kWide - 2, 0, kWide - 3});
  expect_groups<std::int64_t, std::int64_t>(
      space, {0, kWide - 1, kWide, 3 * kWide, 1 + (kWide << 20)},
      {kWide << 20, kWide, kWide - 1, 3 * kWide, kWide - 2, 3 * kWide - 1, 0});
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  constexpr auto kHalf = std::uint64_t{1} << 63;
  expect_groups<std::uint64_t, std::uint64_t>(
      space, {0, 1, kHalf, kHalf, kMost - 3, kMost},
      {kMost - 1, kHalf, kHalf - 1, 0, kMost - 3, kMost - 4, 1, kMost - 1, kHalf + 1});
}

/// By a map, in which parts own any vertices, some of them none; and by ranges, asked in the same
/// way; and by groups of either's parts.
template <class Id, class Space>
void check_groups_by_ownership(const Space& space) {
  constexpr int kParts = 5;
  const RandomStream stream = {.seed = test_seed(8)};
  SCOPED_TRACE(testing::Message() << "seed " << stream.seed);
  std::vector<std::int32_t> owner;
  for (std::uint64_t v = 0; v < 90; ++v)
    owner.push_back(static_cast<std::int32_t>(random64(stream, v) % (kParts - 1)));
  Buffer<std::int64_t> list;
  for (std::uint64_t k = 0; k < 300; ++k)
    list.push_back(static_cast<std::int64_t>(random64(stream, 500 + k) % 90));
  const auto groups_of_one = block_partition(kParts, kParts);
  const auto on_space = array_on(space, list);
  for (const auto& ownership : {Ownership(owner, kParts), Ownership(block_partition(90, kParts))}) {
    const OwnersOn<Space> owners(space, ownership);
    for (const auto& parts : {groups_of_one, RowPartition({0, 2, 2, kParts})})
      for (int last = -1; last < parts.parts(); ++last) {
        OwnerGroups<Id, Space> groups;
        group_by_owner(space, on_space.data(), std::ssize(list), owners.grouped(space, parts), groups, last);
        HostGroups<Id> expected;
        const auto take = [&](int part) {
          const auto before = std::ssize(expected.ids);
          for (std::int64_t k = 0; k < std::ssize(list); ++k)
            if (parts.owner(ownership.owner(list[k])) == part)
              expected.ids.push_back(static_cast<Id>(list[k])), expected.order.push_back(k);
          return std::ssize(expected.ids) - before;
        };
        for (int part = 0; part < parts.parts(); ++part)
          expected.counts.push_back(part == last ? 0 : take(part));
        if (last >= 0) take(last);
        EXPECT_EQ(
            (HostGroups<Id>{array_from(space, groups.ids), array_from(space, groups.order), groups.counts}),
            expected)
            << "map " << ownership.is_map() << " parts " << parts.parts() << " last " << last;
      }
  }
}

/// By holders: an id goes to each of its parts, codes of one byte and of two.
template <class Id, class Space>
void check_groups_by_holder(const Space& space) {
  for (const int parts : {1, 3, 8, 64})
    for (const std::int64_t count : {0, 1, 300}) {
      constexpr std::int64_t kVertices = 700;
      const RandomStream stream = {.seed = test_seed(9), .batch = static_cast<std::uint64_t>(parts)};
      SCOPED_TRACE(testing::Message() << "seed " << stream.seed << " parts " << parts << " ids " << count);
      std::vector<std::uint64_t> sets;
      for (std::uint64_t v = 0; v < kVertices; ++v)
        sets.push_back(std::uint64_t{1} << random64(stream, v) % parts |
                       (v % 3 == 0 ? random64(stream, 1000 + v) >> (64 - parts) : 0));
      RowHolders holders(kVertices, parts);
      holders.append(std::span(sets));
      holders.finish();
      Buffer<std::int64_t> list;
      for (std::int64_t k = 0; k < count; ++k)
        list.push_back(static_cast<std::int64_t>(random64(stream, 3000 + k) % kVertices));
      const auto on_space = array_on(space, list);
      const auto codes = holders.on(space);
      for (int last = -1; last < parts; last += 1 + parts / 4) {
        OwnerGroups<Id, Space> groups;
        group_by_holder(space, on_space.data(), count, codes.view(), parts, groups, last);
        HostGroups<Id> expected;
        const auto take = [&](int part) {
          const auto before = std::ssize(expected.ids);
          for (std::int64_t k = 0; k < count; ++k)
            if ((sets[list[k]] >> part & 1) != 0)
              expected.ids.push_back(static_cast<Id>(list[k])), expected.order.push_back(k);
          return std::ssize(expected.ids) - before;
        };
        for (int part = 0; part < parts; ++part) expected.counts.push_back(part == last ? 0 : take(part));
        if (last >= 0) take(last);
        EXPECT_EQ(
            (HostGroups<Id>{array_from(space, groups.ids), array_from(space, groups.order), groups.counts}),
            expected)
            << "last " << last;
      }
    }
}

/// Ids become the places that the ownership says.
template <class Id, class Space>
void check_places(const Space& space) {
  for (const auto& ownership :
       {Ownership({2, 0, 2, 2, 0, 1, 2}, 4), Ownership(RowPartition({0, 2, 2, 6, 7}))})
    for (int part = 0; part < 4; ++part) {
      Buffer<Id> ids;
      for (std::int64_t v = 6; v >= 0; --v)
        if (ownership.owner(v) == part) ids.push_back(static_cast<Id>(v));
      auto places = array_on(space, ids);
      const OwnersOn<Space> owners(space, ownership);
      const auto first = to_places(space, owners, part, places.data(), std::ssize(ids));
      const auto found = array_from(space, places);
      for (std::size_t k = 0; k < ids.size(); ++k) EXPECT_EQ(found[k] - first, ownership.local(ids[k]));
    }
}

}  // namespace espalier
