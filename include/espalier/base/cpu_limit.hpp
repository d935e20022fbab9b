// Ends the job when one piece of work takes more time of a processor than it ever should, because a
// library spins in a loop that has no end. Time spent waiting, for a slow disk say, does not count: the
// clock is that of the thread.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace espalier {

class CpuLimit {
 public:
  /// From now until the end of this object the calling thread may compute for `seconds`; then the job
  /// ends with exit code 3 and `message`.
  CpuLimit(double seconds, std::string message);
  ~CpuLimit();
  CpuLimit(const CpuLimit&) = delete;
  CpuLimit& operator=(const CpuLimit&) = delete;

 private:
  void watch(int clock, double end, const std::string& message);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::thread thread_;  ///< last: it uses the others
};

}  // namespace espalier
