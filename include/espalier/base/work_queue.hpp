// One thread that does pieces of work one after another, in the order in which they were given.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

namespace espalier {

class WorkQueue {
 public:
  /// Without a thread of its own work is done where its end is waited for.
  explicit WorkQueue(bool has_thread);
  /// Waits for all work; what it threw is lost.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  bool has_thread() const { return thread_.joinable(); }
  /// Adds a piece of work. wait() of what is returned, or get(), throws what it threw; it may
  /// be dropped.
  std::shared_future<void> add(std::function<void()> work);
  /// Adds a piece of work and waits for it; returns, or throws, what it did. Within a piece it is
  /// done at once.
  template <class Work>
  auto run(const Work& work) {
    using Result = std::invoke_result_t<Work>;
    if (within_piece()) return work();
    if constexpr (std::is_void_v<Result>) {
      add(std::cref(work)).get();
    } else {
      std::optional<Result> result;
      add([&] { result.emplace(work()); }).get();
      return std::move(*result);
    }
  }
  /// Returns when all that was added is done; within a piece, at once, as what was added before it
  /// is.
  void wait();

 private:
  void serve();
  bool within_piece() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<void()>> waiting_;
  bool at_work_ = false, ending_ = false;
  bool deferred_at_work_ = false;                  ///< without a thread: is a piece being done?
  std::deque<std::shared_future<void>> deferred_;  ///< without a thread: not known to be done
  std::thread thread_;                             ///< last: it uses the others
};

}  // namespace espalier
