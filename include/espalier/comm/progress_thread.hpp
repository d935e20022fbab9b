// A thread that lets messages move while another thread computes.
//
// Many MPI libraries move messages only inside of calls, so what is begun before a computation
// arrives after it. This thread calls the library every millisecond (less often after a while), as
// long as its owner wants it to and an exchange of this process is under way; otherwise it sleeps.
// It receives nothing and completes nothing: no result depends on it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace espalier {

class ProgressThread {
 public:
  /// There is none unless it is `wanted` and the MPI library lets several threads communicate
  /// (threads_may_communicate()): then run() does nothing.
  explicit ProgressThread(bool wanted);
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  /// From now on it calls; and no longer. Neither waits.
  void run() { set_running(true); }
  void rest() { set_running(false); }

  /// How often it has called.
  std::int64_t calls() const { return calls_; }

 private:
  void set_running(bool running);
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool running_ = false, ending_ = false;
  std::chrono::steady_clock::time_point since_;  ///< it runs
  std::atomic<std::int64_t> calls_ = 0;
  std::thread thread_;  ///< last: it uses the others
};

/// Before MPI ends in this process: such threads call it no more.
void end_progress_calls();

}  // namespace espalier
