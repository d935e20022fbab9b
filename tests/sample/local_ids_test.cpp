// Laws: the list of vertices grows by the picks that it lacks, ascending, and every pick gets its
// place in it, by either way, for any number of threads, and again with the same object. Oracle:
// a std::map.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "espalier/sample/local_ids.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

template <class Index>
void expect_extended(LocalIds& ids, int threads, const std::vector<std::int64_t>& known,
                     const Buffer<Index>& picks) {
  std::map<std::int64_t, std::int32_t> place;
  for (const auto id : known) place.emplace(id, static_cast<std::int32_t>(place.size()));
  std::map<std::int64_t, std::int32_t> fresh;
  for (const auto id : picks)
    if (!place.contains(id)) fresh.emplace(id, 0);
  auto expected = known;
  for (auto& [id, at] : fresh) {
    at = static_cast<std::int32_t>(expected.size());
    expected.push_back(id);
  }
  place.merge(fresh);

  Buffer<std::int64_t> vertices(known.begin(), known.end());
  Buffer<std::int32_t> local(picks.size());
  ids.extend(Cpu{threads}, std::span<const Index>(picks), vertices, local.data());
  EXPECT_TRUE(std::ranges::equal(vertices, expected));
  std::int64_t wrong = 0;
  for (std::size_t k = 0; k < picks.size(); ++k) wrong += local[k] != place.at(picks[k]);
  EXPECT_EQ(wrong, 0) << "of " << picks.size();
}

template <class Index>
void try_sizes(std::int64_t n, bool by_marks) {
  const auto seed = test_seed(n);
  SCOPED_TRACE(testing::Message() << "seed " << seed << " n " << n);
  std::mt19937_64 random(seed);
  LocalIds ids(n);
  for (const auto& [known_count, pick_count] :
       {std::pair<std::int64_t, std::int64_t>{1, 0}, {0, 1}, {1, 1}, {7, 20}, {40, 5}, {300, 2500}}) {
    ASSERT_EQ(LocalIds::prefers_marks(n, known_count + pick_count), by_marks || pick_count > 1000);
    std::map<std::int64_t, int> known;
    while (std::ssize(known) < std::min(known_count, n))
      known.emplace(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)), 0);
    std::vector<std::int64_t> list;
    for (const auto& [id, nothing] : known) list.push_back(id);
    std::shuffle(list.begin(), list.end(), random);
    Buffer<Index> picks;
    for (std::int64_t k = 0; k < pick_count; ++k)
      picks.push_back(static_cast<Index>(random() % static_cast<std::uint64_t>(n)));
    if (pick_count > 2) picks[0] = 0, picks[1] = static_cast<Index>(n - 1), picks[2] = picks[1];
    for (const int threads : {1, 2, 3}) expect_extended(ids, threads, list, picks);
  }
}

TEST(LocalIds, SmallGraphsGoByMarks) {
  for (const std::int64_t n : {1, 63, 64, 65, 200}) try_sizes<std::int32_t>(n, true);
  try_sizes<std::int64_t>(130, true);
}

TEST(LocalIds, FewPicksInALargeGraphGoByHash) {
  try_sizes<std::int32_t>(500'000, false);
  try_sizes<std::int64_t>(500'001, false);
}

TEST(LocalIds, IdsBeyond32Bits) {
  const std::int64_t n = std::int64_t{1} << 45;
  LocalIds ids(n);
  expect_extended<std::int64_t>(ids, 1, {n - 1, 5}, {n - 2, 5, n - 1, std::int64_t{1} << 32, 0, n - 2});
}

}  // namespace
}  // namespace espalier
