// Laws: pieces of work are done once each, in the order in which they were added, by one thread, or
// without one where their end is waited for; each tells its own error, and the others go on.
#include "espalier/base/work_queue.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace espalier {
namespace {

class Queues : public testing::TestWithParam<bool> {};

TEST_P(Queues, DoPiecesInOrder) {
  WorkQueue queue(GetParam());
  std::vector<int> done;
  std::vector<std::shared_future<void>> ends;
  for (int piece = 0; piece < 50; ++piece) ends.push_back(queue.add([&, piece] { done.push_back(piece); }));
  ends[20].wait();
  EXPECT_GE(std::ssize(done), 21);
  queue.wait();
  ASSERT_EQ(std::ssize(done), 50);
  for (int piece = 0; piece < 50; ++piece) EXPECT_EQ(done[piece], piece);
  queue.wait();  // nothing is left
}

TEST_P(Queues, TellEachErrorToWhoWaitsForIt) {
  WorkQueue queue(GetParam());
  int done = 0;
  const auto bad = queue.add([] { throw std::runtime_error("no"); });
  const auto good = queue.add([&] { ++done; });
  queue.wait();
  EXPECT_THROW(bad.get(), std::runtime_error);
  good.get();
  EXPECT_EQ(done, 1);
}

TEST_P(Queues, EndTheirWorkBeforeTheyGo) {
  int done = 0;
  {
    WorkQueue queue(GetParam());
    for (int piece = 0; piece < 10; ++piece) queue.add([&] { ++done; });
    queue.add([] { throw std::runtime_error("nobody asks"); });
  }
  EXPECT_EQ(done, 10);
}

TEST_P(Queues, WorkOnAThreadOfTheirOwnIfTheyHaveOne) {
  WorkQueue queue(GetParam());
  const auto thread = queue.run([] { return std::this_thread::get_id(); });
  EXPECT_EQ(thread != std::this_thread::get_id(), GetParam());
  EXPECT_EQ(queue.run([] { return std::this_thread::get_id(); }), thread);
}

TEST_P(Queues, GiveWhatAPieceGaveBehindThoseBefore) {
  WorkQueue queue(GetParam());
  std::vector<int> done;
  queue.add([&] { done.push_back(1); });
  const auto found = queue.run([&] {
    done.push_back(2);
    queue.wait();  // within a piece nothing is waited for
    return queue.run([&] { return done.size(); }) + 10;
  });
  EXPECT_EQ(found, 12u);
  queue.run([&] { done.push_back(3); });
  EXPECT_EQ(done, (std::vector<int>{1, 2, 3}));
  EXPECT_THROW(queue.run([]() -> int { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(queue.run([] { return 7; }), 7);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutThread, Queues, testing::Bool());

}  // namespace
}  // namespace espalier
