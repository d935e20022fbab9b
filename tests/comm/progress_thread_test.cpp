// ranks: 1 4
// Laws: with the thread a message arrives while nobody else calls the MPI library; it calls nothing
// where nothing is under way.
#include "espalier/comm/progress_thread.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>

#include "espalier/base/clock.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/comm/session.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

constexpr std::int64_t kNumbers = 1 << 18;  // far beyond what a library sends before it is asked to

// Waits without a call of the library, a minute at most.
bool becomes(std::int64_t& place, std::int64_t value) {
  const std::atomic_ref<std::int64_t> seen(place);
  for (int k = 0; k < 60000 && seen.load() != value; ++k) usleep(1000);
  return seen.load() == value;
}

// On one node rank r may read what rank s sends with one copy, so only the thread of r must call.
TEST(ProgressThread, MessagesMoveWhileOthersCompute) {
  if (!threads_may_communicate()) GTEST_SKIP() << "this MPI library lets one thread communicate";
  const auto& world = test_world();
  ProgressThread thread(true);
  for (int round = 1; round <= 2; ++round) {
    Buffer<std::int64_t> send(static_cast<std::size_t>(kNumbers * world.size())), received(send.size());
    std::ranges::fill(send, 1000 * round + world.rank());
    const std::vector<std::int64_t> counts(static_cast<std::size_t>(world.size()), kNumbers);
    auto exchange = world.begin_all_to_all_v(send.data(), counts, received.data(), counts, "x");
    thread.run();
    for (int s = 0; s < world.size(); ++s)
      EXPECT_TRUE(becomes(received[static_cast<std::size_t>((s + 1) * kNumbers - 1)], 1000 * round + s));
    thread.rest();
    exchange.finish();
    world.barrier();
  }
  EXPECT_EQ(thread.calls() > 0, world.size() > 1);
}

TEST(ProgressThread, CallsNothingWhereNothingIsUnderWay) {
  ProgressThread thread(true), none(false);
  ASSERT_EQ(exchanges_under_way(), 0);
  for (auto* one : {&thread, &none}) {
    one->run();
    usleep(20000);
    one->rest();
    EXPECT_EQ(one->calls(), 0);
  }
}

}  // namespace
}  // namespace espalier
