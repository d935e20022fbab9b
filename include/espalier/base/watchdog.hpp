// A thread that notices when nothing moves any more. After `minutes` without progress it prints where this process is
// (base/whereabouts.hpp), on every rank that can still print, so that the one at fault is seen by its place or by its
// silence; after as long again it ends the job, so that a batch system can start it anew.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

namespace espalier {

class Watchdog {
 public:
  /// 0 minutes: watches nothing.
  explicit Watchdog(double minutes);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Something moved: a step or a layer of evaluation is done.
  void note_progress();

 private:
  void watch();

  double seconds_;
  std::mutex mutex_;
  std::condition_variable changed_;
  double last_progress_ = 0;
  bool told_ = false, ending_ = false;
  std::thread thread_;  ///< last: it uses the others
};

}  // namespace espalier
