// Laws: the lists of all batches grow as LocalIds lets each grow, and every pick gets the same
// place, on a GPU whatever the budget cuts into groups, on the CPU for any number of threads.
// Oracle: LocalIds, batch by batch.
// ranks: 1
#include "espalier/sample/local_ids.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "cuda_test.hpp"
#include "espalier/base/error.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

template <class Index>
struct Lists {
  Buffer<std::int64_t> vertices;
  Buffer<Index> picks;
};

// Batch b knows `known` and has `picks`; ids are drawn from all of the graph, and its ends
// are there.
template <class Index>
Lists<Index> random_lists(std::int64_t ids, std::int64_t known, std::int64_t picks, std::mt19937_64& random) {
  Lists<Index> lists;
  const auto draw = [&] { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(ids)); };
  while (std::ssize(lists.vertices) < std::min(known, ids)) {
    const auto id = draw();
    if (std::ranges::find(lists.vertices, id) == lists.vertices.end()) lists.vertices.push_back(id);
  }
  for (std::int64_t k = 0; k < picks; ++k) lists.picks.push_back(static_cast<Index>(draw()));
  if (picks > 2)
    lists.picks[0] = 0, lists.picks[1] = static_cast<Index>(ids - 1), lists.picks[2] = lists.picks[1];
  return lists;
}

template <class Index>
void expect_ids_as_on_cpu(const Cuda& gpu, std::int64_t ids, const std::vector<Lists<Index>>& batches,
                          std::int64_t budget) {
  std::vector<std::int64_t> pick_offsets = {0}, numbers;
  std::vector<Buffer<std::int64_t>> known;
  Buffer<std::int64_t> expected;
  Buffer<Index> picks;
  Buffer<std::int32_t> expected_local;
  std::vector<std::int64_t> expected_offsets = {0};
  LocalIds oracle(ids);
  for (const auto& lists : batches) {
    known.push_back(lists.vertices);
    numbers.push_back(std::ssize(numbers));
    picks.insert(picks.end(), lists.picks.begin(), lists.picks.end());
    pick_offsets.push_back(std::ssize(picks));
    auto list = lists.vertices;
    Buffer<std::int32_t> local(lists.picks.size());
    oracle.extend(Cpu{1}, std::span<const Index>(lists.picks), list, local.data());
    expected.insert(expected.end(), list.begin(), list.end());
    expected_offsets.push_back(std::ssize(expected));
    expected_local.insert(expected_local.end(), local.begin(), local.end());
  }
  const auto check = [&](const auto& space, auto... budget_of_gpu) {
    const auto frontier = stack_frontier(space, known, numbers);
    const auto on_space = copy_to(space, std::span<const Index>(picks));
    auto local = copy_to(space, std::span<const std::int32_t>(Buffer<std::int32_t>(picks.size(), -1)));
    const auto next =
        extend(space, ids, frontier, on_space.data(), {space, pick_offsets}, local.data(), budget_of_gpu...);
    EXPECT_TRUE(std::ranges::equal(next.offsets.host(), expected_offsets));
    EXPECT_TRUE(std::ranges::equal(next.numbers.host(), numbers));
    EXPECT_EQ(copy_from(space, next.vertices), expected);
    EXPECT_EQ(copy_from(space, local), expected_local);
  };
  check(gpu, budget);
  for (const int threads : {1, 3}) check(Cpu{threads});
}

template <class Index>
void try_sizes(const Cuda& gpu, std::int64_t ids) {
  const auto seed = test_seed(static_cast<std::uint64_t>(ids));
  SCOPED_TRACE(testing::Message() << "seed " << seed << " ids " << ids);
  std::mt19937_64 random(seed);
  std::vector<Lists<Index>> batches;
  for (const auto& [known, picks] : {std::pair<std::int64_t, std::int64_t>{1, 0},
                                     {0, 1},
                                     {1, 1},
                                     {0, 0},
                                     {7, 20},
                                     {40, 5},
                                     {300, 2500},
                                     {1, 700}})
    batches.push_back(random_lists<Index>(ids, known, picks, random));
  expect_ids_as_on_cpu(gpu, ids, batches, 0);
  const auto of_one = (ids / 256 + 1) * 80;
  for (const std::int64_t budget : {std::int64_t{1}, 2 * of_one, 3 * of_one, 7 * of_one})
    expect_ids_as_on_cpu(gpu, ids, batches, budget);
  expect_ids_as_on_cpu<Index>(gpu, ids, {}, 0);
}

class DeviceLocalIds : public CudaTest {};

TEST_F(DeviceLocalIds, ListsGrowAsOnTheCpu) {
  for (const std::int64_t ids : {1, 63, 64, 65, 255, 256, 257, 1000, 70'000})
    try_sizes<std::int32_t>(gpu(), ids);
  try_sizes<std::int64_t>(gpu(), 513);
}

TEST_F(DeviceLocalIds, ManySmallBatches) {
  std::mt19937_64 random(1);
  std::vector<Lists<std::int32_t>> batches;
  for (int b = 0; b < 300; ++b) batches.push_back(random_lists<std::int32_t>(90, b % 5, b % 7, random));
  expect_ids_as_on_cpu(gpu(), 90, batches, 0);
}

TEST_F(DeviceLocalIds, OneLargeBatchAmongSmallOnes) {
  std::mt19937_64 random(2);
  std::vector<Lists<std::int32_t>> batches;
  for (int b = 0; b < 50; ++b)
    batches.push_back(random_lists<std::int32_t>(900, 3, b == 31 ? 40'000 : 2, random));
  expect_ids_as_on_cpu(gpu(), 900, batches, 0);
}

TEST_F(DeviceLocalIds, EveryIdOfTheGraph) {
  Lists<std::int64_t> all;
  all.vertices.resize(2000);
  std::iota(all.vertices.begin(), all.vertices.end(), std::int64_t{0});
  all.picks.assign(all.vertices.rbegin(), all.vertices.rend());
  auto none = all;
  none.vertices.clear();
  expect_ids_as_on_cpu<std::int64_t>(gpu(), 2000, {all, none, all}, 0);
}

}  // namespace
}  // namespace espalier
