// Laws: work runs on another thread, once, in the order in which it was started; wait() returns
// after it and throws what it threw; a worker that goes waits for its work.
#include "espalier/base/worker.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <vector>

namespace espalier {
namespace {

TEST(Worker, RunsPiecesInOrderOnAThreadOfItsOwn) {
  Worker worker;
  worker.wait();  // nothing under way
  std::vector<int> done;
  std::thread::id thread;
  for (int piece = 0; piece < 100; ++piece) {
    worker.start([&, piece] {
      thread = std::this_thread::get_id();
      done.push_back(piece);
    });
    worker.wait();
    worker.wait();
    ASSERT_EQ(std::ssize(done), piece + 1);
    EXPECT_EQ(done.back(), piece);
  }
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(Worker, WaitThrowsOnceWhatTheWorkThrew) {
  Worker worker;
  worker.start([] { throw std::runtime_error("no"); });
  EXPECT_THROW(worker.wait(), std::runtime_error);
  worker.wait();
  int done = 0;
  worker.start([&] { ++done; });
  worker.wait();
  EXPECT_EQ(done, 1);
}

TEST(Worker, GoesAfterItsWork) {
  bool done = false;
  {
    Worker worker;
    worker.start([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      done = true;
    });
  }
  EXPECT_TRUE(done);
  Worker failing;
  failing.start([] { throw std::runtime_error("nobody asks"); });
}

}  // namespace
}  // namespace espalier
