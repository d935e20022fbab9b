#include "espalier/base/last_words.hpp"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "espalier/base/error.hpp"

namespace espalier {

namespace {

// Set once, before any handler reads it.
std::atomic<int> own_flag{0};
std::atomic<std::atomic<int>*> flag{&own_flag};
std::atomic<const Fellow*> first_fellow{nullptr};
std::atomic<std::size_t> fellow_count{0};

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

LastLine::LastLine() {
  const auto& who = failure_context();
  *this << "espalier: rank " << who.rank << " on " << who.host.c_str() << ": ";
}

LastLine& LastLine::operator<<(const char* text) {
  const auto length = std::min(std::strlen(text), sizeof text_ - 12 - size_);
  std::memcpy(text_ + size_, text, length);
  size_ += length;
  return *this;
}

LastLine& LastLine::operator<<(std::int64_t number) {
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

void LastLine::write() {
  text_[size_++] = '\n';
  write_to_stderr({text_, size_});
}

void set_fellows(std::vector<Fellow> fellows, std::atomic<int>* spoken) {
  static std::vector<Fellow> kept;
  kept = std::move(fellows);
  first_fellow = kept.data();
  fellow_count = kept.size();
  if (spoken != nullptr) flag = spoken;
}

bool claim_last_word() {
  return flag.load()->exchange(1) == 0;
}

bool last_word_is_spoken() {
  return flag.load()->load() != 0;
}

const Fellow* vanished_fellow() {
  const Fellow* fellow = first_fellow;
  for (std::size_t k = 0; k < fellow_count; ++k, ++fellow)
    if (kill(fellow->pid, 0) != 0 && errno == ESRCH) return fellow;
  return nullptr;
}

bool on_first_node() {
  const Fellow* fellow = first_fellow;
  bool here = failure_context().rank == 0;
  for (std::size_t k = 0; k < fellow_count; ++k) here = here || fellow[k].rank == 0;
  return here;
}

}  // namespace espalier
