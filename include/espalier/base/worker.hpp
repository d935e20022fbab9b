// One thread beside the caller's, which does one piece of work at a time.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace espalier {

class Worker {
 public:
  Worker();
  /// Waits for the work under way; what it threw is lost.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Begins `work` on the thread. Only after wait() returned from the work before.
  void start(std::function<void()> work);

  /// Returns when nothing is under way, and throws what the work threw.
  void wait();

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;  ///< empty: nothing under way
  std::exception_ptr error_;
  bool ending_ = false;
  std::thread thread_;  ///< last: it uses the others
};

}  // namespace espalier
