// A fault or the end of the time jumps out of the work by siglongjmp. Memory may be in disorder
// then, its lock held: the way out allocates nothing before it has spoken, and an alarm ends it if
// it stalls.
#include "espalier/base/crash_guard.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <fstream>

#include "espalier/base/error.hpp"
#include "espalier/base/signals.hpp"

namespace espalier {

namespace {

constexpr std::array<int, 6> kFaults = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGVTALRM};

sigjmp_buf way_out;
alignas(16) char signal_stack[64 << 10];  // a fault may be the end of the ordinary stack

void jump_out(int) {
  siglongjmp(way_out, 1);
}
void leave_at_once(int) {
  _exit(static_cast<int>(ExitCode::kInput));
}

// Handlers for faults, on a stack of their own, until the end of this object.
class FaultHandlers {
 public:
  FaultHandlers() {
    stack_t stack = {};
    stack.ss_sp = signal_stack;
    stack.ss_size = sizeof signal_stack;
    sigaltstack(&stack, &stack_before_);
    struct sigaction action = {};
    action.sa_handler = jump_out;
    action.sa_flags = SA_ONSTACK | SA_NODEFER;
    for (std::size_t k = 0; k < kFaults.size(); ++k) sigaction(kFaults[k], &action, &before_[k]);
  }
  ~FaultHandlers() {
    for (std::size_t k = 0; k < kFaults.size(); ++k) sigaction(kFaults[k], &before_[k], nullptr);
    sigaltstack(&stack_before_, nullptr);
  }
  FaultHandlers(const FaultHandlers&) = delete;
  FaultHandlers& operator=(const FaultHandlers&) = delete;

 private:
  std::array<struct sigaction, kFaults.size()> before_ = {};
  stack_t stack_before_ = {};
};

// SIGVTALRM to this thread when it has computed for so long.
class CpuTimer {
 public:
  explicit CpuTimer(double seconds) {
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGVTALRM;
    event._sigev_un._tid = gettid();
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) != 0) return;
    itimerspec time = {};
    time.it_value.tv_sec = static_cast<time_t>(seconds);
    time.it_value.tv_nsec = static_cast<long>(1e9 * (seconds - static_cast<double>(time.it_value.tv_sec)));
    timer_settime(timer_, 0, &time, nullptr);
    armed_ = true;
  }
  ~CpuTimer() {
    if (armed_) timer_delete(timer_);
  }
  CpuTimer(const CpuTimer&) = delete;
  CpuTimer& operator=(const CpuTimer&) = delete;

 private:
  timer_t timer_ = {};
  bool armed_ = false;
};

// The process may grow by so much, until the end of this object.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::int64_t bytes) {
    std::int64_t pages = 0;
    if (!(std::ifstream("/proc/self/statm") >> pages) || getrlimit(RLIMIT_AS, &before_) != 0) return;
    rlimit limit = before_;
    const auto most = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + bytes);
    if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < most) return;
    limit.rlim_cur = most;
    set_ = setrlimit(RLIMIT_AS, &limit) == 0;
  }
  ~MemoryLimit() {
    if (set_) setrlimit(RLIMIT_AS, &before_);
  }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  rlimit before_ = {};
  bool set_ = false;
};

std::atomic<int> code_to_keep{0};

void leave_with_code(int) {
  _exit(code_to_keep);
}

[[noreturn]] void leave(const std::string& line) {
  constexpr unsigned kPatienceSeconds = 2;
  note_leaving();  // the ranks beside this one need not say that it has died
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) _exit(static_cast<int>(ExitCode::kInput));
  std::signal(SIGALRM, leave_at_once);
  alarm(kPatienceSeconds);
  if (failure_context().abort_job) failure_context().abort_job(static_cast<int>(ExitCode::kInput));
  _exit(static_cast<int>(ExitCode::kInput));
}

}  // namespace

void keep_exit_code(int code) {
  code_to_keep = code;
  for (const int fault : {SIGSEGV, SIGBUS}) std::signal(fault, leave_with_code);
}

void run_crash_guarded(double seconds, std::int64_t bytes, const std::string& message,
                       const std::function<void()>& work) {
  const auto line = fmt::format("espalier: error: {}\n", message);
  const FaultHandlers handlers;
  const MemoryLimit limit(bytes);
  const CpuTimer timer(seconds);
  if (sigsetjmp(way_out, 1) != 0) {
    rlimit free = {RLIM_INFINITY, RLIM_INFINITY};
    getrlimit(RLIMIT_AS, &free);
    free.rlim_cur = free.rlim_max;
    setrlimit(RLIMIT_AS, &free);
    leave(line);
  }
  work();
}

}  // namespace espalier
