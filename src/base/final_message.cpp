#include "espalier/base/final_message.hpp"

#include <omp.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "espalier/base/error.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/base/signals.hpp"
#include "espalier/base/text.hpp"

namespace espalier {

namespace {

// Set once, before any handler reads it.
std::atomic<int> own_flag{0};
std::atomic<std::atomic<int>*> flag{&own_flag};
std::atomic<const NodePeer*> first_peer{nullptr};
std::atomic<std::size_t> peer_count{0};

}  // namespace

void write_to_stderr(std::string_view text) {
  constexpr std::size_t kNeverWaits = 4096;  // PIPE_BUF: a pipe that has room has room for so much
  constexpr int kPatience = 1000;            // milliseconds
  while (!text.empty()) {
    pollfd ready = {STDERR_FILENO, POLLOUT, 0};
    const int polled = poll(&ready, 1, kPatience);
    if (polled < 0 && errno == EINTR) continue;
    if (polled <= 0) return;
    const auto written = write(STDERR_FILENO, text.data(), std::min(text.size(), kNeverWaits));
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

FinalLine::FinalLine() {
  const auto& who = failure_context();
  *this << "espalier: rank " << who.rank << " on " << who.host.c_str() << ": ";
}

FinalLine& FinalLine::operator<<(const char* text) {
  const auto length = std::min(std::strlen(text), sizeof text_ - 12 - size_);
  std::memcpy(text_ + size_, text, length);
  size_ += length;
  return *this;
}

FinalLine& FinalLine::operator<<(std::int64_t number) {
  char digits[24] = {};
  char* begin = digits + sizeof digits - 1;
  const bool negative = number < 0;
  do {
    *--begin = static_cast<char>('0' + (negative ? -(number % 10) : number % 10));
    number /= 10;
  } while (number != 0);
  if (negative) *--begin = '-';
  return *this << begin;
}

void FinalLine::write() {
  text_[size_++] = '\n';
  write_to_stderr({text_, size_});
}

void set_node_peers(std::vector<NodePeer> peers, std::atomic<int>* spoken) {
  static std::vector<NodePeer> kept;
  kept = std::move(peers);
  first_peer = kept.data();
  peer_count = kept.size();
  if (spoken != nullptr) flag = spoken;
}

bool claim_final_message() {
  return flag.load()->exchange(1) == 0;
}

bool final_message_is_claimed() {
  return flag.load()->load() != 0;
}

const NodePeer* vanished_peer() {
  const NodePeer* peer = first_peer;
  for (std::size_t k = 0; k < peer_count; ++k, ++peer)
    if (kill(peer->pid, 0) != 0 && errno == ESRCH) return peer;
  return nullptr;
}

bool on_first_node() {
  const NodePeer* peer = first_peer;
  bool here = failure_context().rank == 0;
  for (std::size_t k = 0; k < peer_count; ++k) here = here || peer[k].rank == 0;
  return here;
}

// A fault or the end of the time jumps out of the work by siglongjmp. Memory may be in disorder
// then, its lock held: the way out allocates nothing before it has spoken, and an alarm ends it if
// it stalls.

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

// ---- ending the job ----

FailureContext& failure_context() {
  static FailureContext context;
  return context;
}

namespace {
[[noreturn]] void end_job(const std::string& text, ExitCode code) {
  constexpr unsigned kPatience = 30;  // seconds
  note_leaving();
  remove_temporary_files();
  write_to_stderr(text);  // at once, so that lines of several failing ranks do not mix
  alarm(kPatience);       // where ending the job hangs too, this process ends, and the
                          // launcher sees it
  if (failure_context().abort_job) failure_context().abort_job(static_cast<int>(code));
  std::_Exit(static_cast<int>(code));
}
}  // namespace

void fail_check(const char* file, int line, const char* expression, std::string_view message) {
  const auto& who = failure_context();
  const auto text = fmt::format("rank {} on {}: {}:{}: check failed: {}: {}", who.rank, who.host, file, line,
                                expression, excerpt(message));
  if (who.throws && omp_in_parallel() == 0) throw CheckFailed(text);
  end_job("espalier: " + text + "\n", ExitCode::kInternal);
}

void fail_job(ExitCode code, std::string_view message) {
  const auto& who = failure_context();
  end_job(fmt::format("espalier: rank {} on {}: {}\n", who.rank, who.host, excerpt(message)), code);
}

}  // namespace espalier
