// Fetches with a cache, for the tests of every space: what they give is what they give without,
// however many are under way and whatever becomes of the cache meanwhile; what they ask for is what
// the cache had not.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "espalier/feature/row_cache.hpp"
#include "mpi_test.hpp"
#include "row_store_cases.hpp"

namespace espalier {

constexpr std::int64_t kCachedVertices = 90, kCachedPiece = 2;

/// Of a rank in one of its steps: none, one or two lists of distinct ids, few of them often.
inline std::vector<std::vector<std::int64_t>> cached_lists(int rank, std::uint64_t step) {
  const RandomStream stream = {.seed = step, .batch = static_cast<std::uint64_t>(rank)};
  std::vector<std::vector<std::int64_t>> lists((rank + step) % 3);
  std::uint64_t k = 0;
  for (auto& list : lists) {
    std::set<std::int64_t> ids;
    for (int i = 0; i < 30; ++i) {
      const auto x = to_unit_double(random64(stream, k++));
      ids.insert(static_cast<std::int64_t>(x * x * static_cast<double>(kCachedVertices)));
    }
    list.assign(ids.rbegin(), ids.rend());
  }
  return lists;
}

/// All bytes that a rank's memory may take: no row of another rank is left out of that.
inline std::int64_t bytes_of_all(std::int64_t row_bytes) {
  return 2 * kCachedVertices * (row_bytes + RowCache::kFoundBy);
}

/// `under_way` fetches at a time. Returns the rows that the cache had, on this rank.
template <class Space>
std::int64_t expect_same_rows(const Space& space, const GridOn<Space>& grid, const RowStoreOn<Space>& store,
                              CacheRule rule, std::int64_t bytes, std::size_t under_way, bool changes) {
  constexpr std::uint64_t kSteps = 12, kWindow = 4;
  RowCacheOn<Space> cache(rule, store.storage().row_bytes(), kCachedPiece);
  auto& policy = cache.policy();
  cache.set_memory(space, bytes);
  std::vector<std::int64_t> first;
  for (std::int64_t v = 0; v < kCachedVertices; ++v)
    if (!store.storage().has(v)) first.push_back(v);
  EXPECT_EQ(std::ssize(first), store.storage().rows_elsewhere());
  policy.set_list(first);
  const int rank = grid.host().world().rank();
  std::deque<PendingFetchOn<Space>> fetches;
  std::deque<std::uint64_t> steps;
  std::int64_t asked = 0, had = 0, remote = 0, limit = bytes;
  const auto finish = [&] {
    store.advance(space, fetches.front(), FetchMove::kRows, "cached");
    std::vector<Matrix<float, Space>> rows, expected;
    store.finish_fetch(space, fetches.front(), rows);
    const ListsOnSpace<Space> lists(space, cached_lists(rank, steps.front()));
    store.fetch(space, lists.spans, expected, "plain");
    for (std::size_t m = 0; m < lists.spans.size(); ++m)
      EXPECT_EQ(copy_from(space, rows[m].data), copy_from(space, expected[m].data))
          << "step " << steps.front();
    asked += fetches.front().remote_rows();
    had += fetches.front().cached_rows();
    fetches.pop_front();
    steps.pop_front();
    EXPECT_LE(cache.bytes(), limit);
  };
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    if (changes && step % 3 == 1) {
      cache.set_memory(space, limit = step % 2 == 0 ? bytes : bytes / 3);
      EXPECT_LE(cache.bytes(), limit);
    }
    if (step % kWindow == 0 && policy.prefetches()) {
      for (auto ahead = step; ahead < step + kWindow; ++ahead)
        for (auto list : cached_lists(rank, ahead)) {
          std::erase_if(list, [&](auto v) { return store.storage().has(v); });
          policy.prefetch(static_cast<std::int64_t>(ahead), list);
        }
      policy.end_prefetch();
    }
    const auto lists = cached_lists(rank, step);
    for (const auto& list : lists)
      for (const auto v : list) remote += !store.storage().has(v);
    const ListsOnSpace<Space> on_space(space, lists);
    fetches.emplace_back(CachedCopiesOn<Space>{&cache, nullptr});
    steps.push_back(step);
    store.begin_counts(space, on_space.spans, fetches.back(), "cached");
    if (under_way % 2 == 0) store.advance(space, fetches.back(), FetchMove::kIds, "cached");
    if (fetches.size() >= under_way) finish();
  }
  while (!fetches.empty()) finish();
  EXPECT_EQ(asked + had, remote);

  // What is sent: a count to each, an id and a row for each row asked for.
  auto& traffic = grid.host().traffic();
  const auto received =
      grid.host().world().all_reduce(traffic.of("cached").bytes_received, Reduction::kSum, "test");
  const auto wanted = grid.host().world().all_reduce(asked, Reduction::kSum, "test");
  const std::int64_t pairs = grid.host().ranks() * (grid.host().rows() - 1);
  EXPECT_EQ(received,
            wanted * (4 + store.storage().row_bytes()) + 8 * pairs * static_cast<std::int64_t>(kSteps));
  traffic.clear();
  return had;
}

/// Every rule, no memory, some and enough, several fetches under way; `thorough`: each with each.
template <class Space>
void expect_cached_fetches(const Space& space, const GridOn<Space>& grid, const RowStoreOn<Space>& store,
                           bool thorough) {
  for (const auto rule : {CacheRule::kDegree, CacheRule::kLru, CacheRule::kBelady})
    for (const std::size_t under_way : {1, 2, 3})
      for (const bool changes : {false, true}) {
        if (!thorough && under_way != 1 + static_cast<std::size_t>(rule) % 3) continue;
        std::int64_t before = -1;
        for (const auto share : {0, 9, 1}) {
          SCOPED_TRACE(
              fmt::format("rule {} under way {} share {}", static_cast<int>(rule), under_way, share));
          const auto bytes = share == 0 ? 0 : bytes_of_all(store.storage().row_bytes()) / share;
          const auto had = expect_same_rows(space, grid, store, rule, bytes, under_way, changes);
          if (share == 0) {
            EXPECT_EQ(had, 0);
          }
          if (!changes) {
            EXPECT_GE(had, before);
          }
          before = had;
        }
        const auto all = grid.host().world().all_reduce(before, Reduction::kSum, "test");
        EXPECT_EQ(all > 0, store.ownership().parts() > 1);
      }
}

}  // namespace espalier
