#include "espalier/base/work_queue.hpp"

#include <utility>

namespace espalier {

namespace {

struct AtWork {
  explicit AtWork(bool& is) : is_(is) { is_ = true; }
  ~AtWork() { is_ = false; }
  bool& is_;
};

}  // namespace

WorkQueue::WorkQueue(bool has_thread) {
  if (has_thread) thread_ = std::thread([this] { serve(); });
}

WorkQueue::~WorkQueue() {
  wait();
  if (!has_thread()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

// Deferred work is done in its order, too: it begins with the end of the work before it.
std::shared_future<void> WorkQueue::add(std::function<void()> work) {
  if (!has_thread()) {
    const auto before = deferred_.empty() ? std::shared_future<void>() : deferred_.back();
    deferred_.push_back(std::async(std::launch::deferred, [this, before, work = std::move(work)] {
                          if (before.valid()) before.wait();
                          const AtWork mark(deferred_at_work_);
                          work();
                        }).share());
    while (deferred_.size() > 1) deferred_.pop_front();
    return deferred_.back();
  }
  std::packaged_task<void()> task(std::move(work));
  auto done = task.get_future().share();
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(task));
  }
  changed_.notify_all();
  return done;
}

bool WorkQueue::within_piece() const {
  return has_thread() ? std::this_thread::get_id() == thread_.get_id() : deferred_at_work_;
}

void WorkQueue::wait() {
  if (within_piece()) return;
  if (!has_thread()) {
    if (!deferred_.empty()) deferred_.back().wait();
    return;
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_.empty() && !at_work_; });
}

void WorkQueue::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    auto task = std::move(waiting_.front());
    waiting_.pop_front();
    at_work_ = true;
    lock.unlock();
    task();
    task = {};  // what it holds goes before anyone hears that it is done
    lock.lock();
    at_work_ = false;
    changed_.notify_all();
  }
}

}  // namespace espalier
