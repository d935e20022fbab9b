#include "espalier/base/cpu_limit.hpp"

#include <pthread.h>
#include <time.h>

#include <chrono>
#include <utility>

#include "espalier/base/error.hpp"

namespace espalier {

namespace {

double seconds_of(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

CpuLimit::CpuLimit(double seconds, std::string message) {
  clockid_t clock{};
  if (pthread_getcpuclockid(pthread_self(), &clock) != 0) return;
  thread_ = std::thread([this, clock, end = seconds_of(clock) + seconds, text = std::move(message)] {
    watch(clock, end, text);
  });
}

CpuLimit::~CpuLimit() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CpuLimit::watch(int clock, double end, const std::string& message) {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (seconds_of(clock) > end) fail_job(ExitCode::kInput, message);
    changed_.wait_for(lock, std::chrono::milliseconds(100));
  }
}

}  // namespace espalier
