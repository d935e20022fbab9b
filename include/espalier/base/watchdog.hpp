// A thread that notices when nothing moves any more. After `minutes` in which no step was finished,
// or before the first step nothing was noted at all, it prints where this process is
// (base/progress.hpp), on every rank that can still print, so that the one at fault is seen by
// its place or by its silence; after as long again it ends the job, so that a batch system can
// start it anew. It waits for no lock that a thread could keep while it hangs, nor for who reads
// stderr.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace espalier {

class Watchdog {
 public:
  /// 0 minutes: watches nothing. `key` is what set them, for the message.
  explicit Watchdog(double minutes, std::string key = "run.stall_minutes");
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void watch();

  double seconds_;
  std::string key_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread thread_;  ///< last: it uses the others
};

}  // namespace espalier
