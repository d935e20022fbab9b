#include "espalier/comm/progress_thread.hpp"

#include <mpi.h>

#include <algorithm>

#include "espalier/comm/communicator.hpp"
#include "espalier/comm/session.hpp"

namespace espalier {

namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr auto kPause = std::chrono::milliseconds(1), kLongestPause = std::chrono::milliseconds(10);

// Held during a call, so that none is under way when MPI ends.
std::mutex calling;
bool may_call = true;

// Any call moves what is under way; this one asks for messages that nobody sends.
bool call_library() {
  const std::lock_guard lock(calling);
  if (!may_call || exchanges_under_way() == 0) return false;
  int arrived = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &arrived, MPI_STATUS_IGNORE);
  return true;
}

// After a second a hundredth of the time that has passed.
SteadyClock::duration pause_after(SteadyClock::duration passed) {
  return std::clamp<SteadyClock::duration>(passed / 100, kPause, kLongestPause);
}

}  // namespace

void end_progress_calls() {
  const std::lock_guard lock(calling);
  may_call = false;
}

ProgressThread::ProgressThread(bool wanted) {
  if (wanted && threads_may_communicate()) thread_ = std::thread([this] { serve(); });
}

ProgressThread::~ProgressThread() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ProgressThread::set_running(bool running) {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    running_ = running;
    since_ = SteadyClock::now();
  }
  if (running) changed_.notify_all();
}

void ProgressThread::serve() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    changed_.wait(lock, [&] { return running_ || ending_; });
    if (!running_) continue;
    lock.unlock();
    if (call_library()) ++calls_;
    lock.lock();
    changed_.wait_for(lock, pause_after(SteadyClock::now() - since_), [&] { return !running_ || ending_; });
  }
}

}  // namespace espalier
