#include "espalier/base/worker.hpp"

#include <utility>

#include "espalier/base/error.hpp"

namespace espalier {

Worker::Worker() : thread_([this] { serve(); }) {}

Worker::~Worker() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !work_; });
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Worker::start(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    ESPALIER_CHECK(!work_ && !error_, "work is under way, or its error was not taken");
    work_ = std::move(work);
  }
  changed_.notify_all();
}

void Worker::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !work_; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Worker::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || work_; });
    if (!work_) return;
    lock.unlock();
    std::exception_ptr error;
    try {
      work_();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    error_ = error;
    work_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace espalier
