// ranks: 2
// Law: a message beyond one piece (1 GiB) arrives whole. Long: it takes 5 GB of memory.
#include <gtest/gtest.h>

#include "mpi_test.hpp"

namespace espalier {
namespace {

TEST(LargeMessage, LongAllToAllVOverOneGibibyte) {
  const auto& world = test_world();
  // 64-bit words: 1.1 GiB
  const std::int64_t count = (std::int64_t{1} << 27) + (std::int64_t{1} << 24) + 3;
  Buffer<std::int64_t> send(static_cast<std::size_t>(count));
  for (std::int64_t k = 0; k < count; ++k) send[static_cast<std::size_t>(k)] = k * 3 + world.rank();
  std::vector<std::int64_t> counts(2, 0);
  counts[static_cast<std::size_t>(1 - world.rank())] = count;
  world.traffic().clear();
  const auto received = world.all_to_all_v(std::span<const std::int64_t>(send), counts, "large");
  ASSERT_EQ(std::ssize(received.data), count);
  std::int64_t wrong = 0;
  for (std::int64_t k = 0; k < count; ++k)
    wrong += received.data[static_cast<std::size_t>(k)] != k * 3 + 1 - world.rank();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(world.traffic().of("large").bytes_received, 8 * count + 8);
}

TEST(LargeMessage, LongBroadcastOverOneGibibyte) {
  const auto& world = test_world();
  Buffer<std::int64_t> values((std::size_t{1} << 27) + 5);
  for (std::size_t k = 0; k < values.size(); ++k)
    values[k] = world.rank() == 1 ? static_cast<std::int64_t>(k) : 0;
  world.broadcast(std::span<std::int64_t>(values), 1, "large");
  std::int64_t wrong = 0;
  for (std::size_t k = 0; k < values.size(); ++k) wrong += values[k] != static_cast<std::int64_t>(k);
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace espalier
