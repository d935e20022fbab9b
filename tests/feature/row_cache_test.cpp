// ranks: 1 3 6
// long ranks: 2 4 8
// Law of a cache of feature rows: it changes no bit of what is fetched, and what it has
// is not sent. Rows by degree, which fill it: on every grid and whoever owns which vertex, of each
// part those with the most entries, and all of them together in the order of a sort of the whole
// matrix.
#include "row_cache_cases.hpp"

#include <map>

#include "dense/random_matrices.hpp"
#include "espalier/feature/cache_policy.hpp"
#include "espalier/product/dist_csr.hpp"
#include "random_graph.hpp"

namespace espalier {
namespace {

float cached_value(std::int64_t v, std::int64_t j) {
  return static_cast<float>(to_unit_double(
      random64({.seed = 3, .row = static_cast<std::uint64_t>(v)}, static_cast<std::uint64_t>(j))));
}

template <class T>
Matrix<T> cached_block(const Ownership& ownership, int part, std::int64_t width) {
  return stored_rows<T>(ownership, part, width, cached_value);
}

TEST(RowCache, ChangesNoBitAndSendsNotWhatItHas) {
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    for (const auto owned : kAllOwned) {
      SCOPED_TRACE(fmt::format("c {} owned {}", c, static_cast<int>(owned)));
      const auto ownership = ownership_of(owned, kCachedVertices, grid.rows());
      if (owned != Owned::kInRanges && c > 1) continue;
      expect_cached_fetches(Cpu{2}, grid,
                            RowStore(grid, ownership, cached_block<float>(ownership, grid.row(), 5)),
                            c == 1 && owned == Owned::kInRanges);
      if (owned == Owned::kAtRandom)
        expect_cached_fetches(Cpu{1}, grid,
                              RowStore(grid, ownership, cached_block<Half>(ownership, grid.row(), 3)), false);
    }
  }
}

// Every rank asks for all rows, and keeps one of each other part: what the model expects of those
// that are asked for is what is sent.
TEST(RowCache, TheModelExpectsWhatIsLeft) {
  constexpr std::int64_t kVertices = 48, kWidth = 6;
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    const auto partition = block_partition(kVertices, grid.rows());
    const RowStore store(grid, partition, cached_block<float>(partition, grid.row(), kWidth));
    RowCache cache(CacheRule::kDegree, store.storage().row_bytes(), 1);
    cache.set_memory(Cpu{1}, (grid.rows() - 1) * (store.storage().row_bytes() + RowCache::kFoundBy));
    std::vector<std::int64_t> ids(kVertices), first;
    for (int part = 0; part < grid.rows(); ++part)
      if (part != grid.row()) first.push_back(partition.begin(part) + 1);
    cache.policy().set_list(first);
    for (std::int64_t v = 0; v < kVertices; ++v) ids[static_cast<std::size_t>(v)] = v;
    const std::vector<std::span<const std::int64_t>> lists = {ids};
    for (int round = 0; round < 2; ++round) {
      grid.traffic().clear();
      PendingFetch fetch({&cache, nullptr});
      store.begin_counts(Cpu{1}, lists, fetch, "fetch");
      store.advance(Cpu{1}, fetch, FetchMove::kRows, "fetch");
      std::vector<Matrix<float>> rows;
      store.finish_fetch(Cpu{1}, fetch, rows);
      EXPECT_EQ(fetch.cached_rows(), round == 0 ? 0 : grid.rows() - 1);
      const auto volume = grid.traffic().of("fetch");
      EXPECT_DOUBLE_EQ(volume.predicted_bytes, static_cast<double>(volume.bytes_received));
      EXPECT_DOUBLE_EQ(volume.predicted_messages, static_cast<double>(volume.messages));
    }
  }
}

// Of a fetch that is given up nothing is taken up; the next one begins anew.
TEST(RowCache, AFetchThatIsGivenUp) {
  const Grid grid(test_world(), 1);
  const auto partition = block_partition(kCachedVertices, grid.rows());
  const RowStore store(grid, partition, cached_block<float>(partition, grid.row(), 4));
  RowCache cache(CacheRule::kDegree, store.storage().row_bytes(), 1);
  cache.set_memory(Cpu{1}, bytes_of_all(store.storage().row_bytes()));
  std::vector<std::int64_t> ids = {0, 17, 40, 89};
  const std::vector<std::span<const std::int64_t>> lists = {ids};
  PendingFetch fetch({&cache, nullptr});
  for (const auto move : {FetchMove::kCounts, FetchMove::kIds, FetchMove::kRows}) {
    store.begin_counts(Cpu{1}, lists, fetch, "fetch");
    store.advance(Cpu{1}, fetch, move, "fetch");
  }
  EXPECT_EQ(cache.policy().size(), 0);
  std::vector<Matrix<float>> rows;
  store.finish_fetch(Cpu{1}, fetch, rows);
  EXPECT_EQ(cache.policy().size(), fetch.remote_rows());
  for (std::size_t k = 0; k < ids.size(); ++k)
    for (std::int64_t j = 0; j < 4; ++j)
      EXPECT_EQ(rows[0](static_cast<std::int64_t>(k), j), cached_value(ids[k], j));
}

TEST(RowsByDegree, AreThoseOfASortOfAllRows) {
  constexpr std::int64_t kVertices = 60;
  const auto whole = random_graph<std::int32_t>(kVertices, 3, true, 5);
  std::vector<std::int64_t> sorted(kVertices);
  for (std::int64_t v = 0; v < kVertices; ++v) sorted[static_cast<std::size_t>(v)] = v;
  std::ranges::stable_sort(sorted, [&](auto a, auto b) { return whole.row_size(a) > whole.row_size(b); });
  for (const int c : divisors(test_world().size())) {
    const Grid grid(test_world(), c);
    for (const auto owned : kAllOwned)
      for (const bool replicated : {false, true})
        for (const std::int64_t most : {0, 3, 1000}) {
          const auto ownership = ownership_of(owned, kVertices, replicated ? 1 : grid.rows());
          std::vector<std::int64_t> expected;
          std::map<int, std::int64_t> taken;
          for (const auto v : sorted)
            if (taken[ownership.owner(v)]++ < most) expected.push_back(v);
          EXPECT_EQ(rows_by_degree(distribute(grid, whole, ownership), most), expected)
              << "c " << c << " owned " << static_cast<int>(owned) << " most " << most;
        }
  }
}

}  // namespace
}  // namespace espalier
