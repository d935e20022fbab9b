#include "espalier/base/final_message.hpp"

#include <omp.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

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
