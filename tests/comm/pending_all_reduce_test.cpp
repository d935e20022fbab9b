// ranks: 1 2 3 6
// long ranks: 8
// Laws: a pending all-reduce is the all-reduce, floats in the order of ranks; several at once,
// begun in whatever order; its books are the all-reduce's.
#include "espalier/comm/pending_all_reduce.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "mpi_test.hpp"

namespace espalier {
namespace {

// What rank r has at place k: floats whose sum depends on the order.
template <class T>
T number_of(int rank, std::int64_t k) {
  if constexpr (std::is_same_v<T, float>)
    return (rank % 2 == 0 ? 1.0f : -1.0f) *
           (1.0f + static_cast<float>((rank * 7919 + k * 31) % 1000) * 1e-7f) * (rank % 3 == 0 ? 1e6f : 1.0f);
  else
    return static_cast<T>((rank + 1) * 1000003 * (k % 5 - (std::is_signed_v<T> ? 2 : 0)));
}

template <class T>
Buffer<T> numbers_of(int rank, std::int64_t size) {
  Buffer<T> numbers;
  for (std::int64_t k = 0; k < size; ++k) numbers.push_back(number_of<T>(rank, k));
  return numbers;
}

template <class T>
Buffer<T> expected(int ranks, std::int64_t size, Reduction reduction) {
  auto whole = numbers_of<T>(0, size);
  for (int r = 1; r < ranks; ++r)
    for (std::int64_t k = 0; k < size; ++k) {
      const T next = number_of<T>(r, k);
      auto& to = whole[static_cast<std::size_t>(k)];
      to = reduction == Reduction::kSum   ? to + next
           : reduction == Reduction::kMin ? std::min(to, next)
                                          : std::max(to, next);
    }
  return whole;
}

template <class T>
void expect_all_reduced() {
  const auto& world = test_world();
  for (const auto reduction : {Reduction::kSum, Reduction::kMin, Reduction::kMax})
    for (const std::int64_t size : {0, 1, 2, 5, 1000, 70001}) {
      auto values = numbers_of<T>(world.rank(), size);
      PendingAllReduce<T> pending;
      pending.begin(world, values, reduction, 0, "x");
      while (!pending.advance(size % 2 == 0)) continue;
      EXPECT_TRUE(pending.advance()) << "nothing is under way";
      EXPECT_EQ(values, expected<T>(world.size(), size, reduction)) << size;
    }
}

TEST(PendingAllReduce, IsTheReductionInTheOrderOfRanks) {
  expect_all_reduced<float>();
  expect_all_reduced<std::int64_t>();
  expect_all_reduced<std::uint64_t>();
}

// Every rank begins them in an order of its own, and looks in another.
TEST(PendingAllReduce, SeveralAtOnceDoNotMix) {
  const auto& world = test_world();
  constexpr int kCount = 5;
  for (int round = 0; round < 3; ++round) {
    std::vector<Buffer<float>> values;
    for (int k = 0; k < kCount; ++k) values.push_back(numbers_of<float>(world.rank(), 1 + 3000 * k));
    std::vector<PendingAllReduce<float>> pending(kCount);
    for (int k = 0; k < kCount; ++k) {
      const int which = (k + world.rank() + round) % kCount;
      pending[which].begin(world, values[which], Reduction::kSum, which, "x");
      pending[(which + 1) % kCount].advance();
    }
    for (int k = kCount; k-- > 0;) {
      while (!pending[k].advance(true)) continue;
      EXPECT_EQ(values[k], expected<float>(world.size(), 1 + 3000 * k, Reduction::kSum)) << k;
    }
  }
}

TEST(PendingAllReduce, BooksWhatAnAllReduceDoes) {
  const auto& world = test_world();
  world.traffic().clear();
  auto values = numbers_of<std::int64_t>(world.rank(), 1001), again = values;
  PendingAllReduce<std::int64_t> pending;
  pending.begin(world, values, Reduction::kSum, 3, "pending");
  while (!pending.advance(true)) continue;
  world.all_reduce(std::span<std::int64_t>(again), Reduction::kSum, "whole");
  EXPECT_EQ(values, again);
  const auto a = world.traffic().of("pending"), b = world.traffic().of("whole");
  EXPECT_EQ(a.bytes_sent, b.bytes_sent);
  EXPECT_EQ(a.bytes_received, b.bytes_received);
  EXPECT_EQ(a.messages, b.messages);
  EXPECT_EQ(a.rounds, b.rounds);
  EXPECT_EQ(exchanges_under_way(), 0);
}

}  // namespace
}  // namespace espalier
