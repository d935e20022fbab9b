#include "espalier/base/watchdog.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <mutex>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/base/final_message.hpp"
#include "espalier/base/signals.hpp"

namespace espalier {

// The notes are atomics and names of bounded length, so that a signal handler may read them.

namespace {

using Moment = std::chrono::steady_clock::time_point;

std::atomic<std::int64_t> current_epoch{0}, current_step{0}, steps_of_epoch{0};
std::atomic<std::uint64_t> movement{0}, progress{0};
std::atomic<const char*> activity{""};

// A name of bounded length, so that noting one allocates nothing.
struct Name {
  char text[48] = {};
  void operator=(std::string_view name) {
    const auto length = std::min(name.size(), sizeof text - 1);
    std::memcpy(text, name.data(), length);
    text[length] = '\0';
  }
};

// One thread's notes; the watchdog reads them while the thread writes.
struct Notes {
  std::mutex mutex;
  bool in_use = false;
  Name stage, label;
  const char* operation = nullptr;
  int ranks = 0;
  bool inside = false;
  Moment since;
};

struct Registry {
  std::mutex mutex;
  std::deque<Notes> threads;  // never moved; places of threads that ended are used again
};
Registry& registry() {
  static Registry* const all = new Registry;  // outlives every thread
  return *all;
}

// The place of a thread among the notes, from its first note to its end.
class Place {
 public:
  Place() {
    const std::scoped_lock lock(registry().mutex);
    for (auto& notes : registry().threads)
      if (!notes.in_use) mine_ = &notes;
    if (mine_ == nullptr) mine_ = &registry().threads.emplace_back();
    mine_->in_use = true;
  }
  ~Place() {
    const std::scoped_lock lock(registry().mutex);
    mine_->in_use = false;
    mine_->operation = nullptr;
    mine_->stage = "";
  }
  Notes& operator*() const { return *mine_; }

 private:
  Notes* mine_ = nullptr;
};

Notes& my_notes() {
  thread_local const Place place;
  return *place;
}

std::string in_words(Notes& notes, Moment now) {
  const std::scoped_lock lock(notes.mutex);
  std::string words;
  if (notes.stage.text[0] != '\0') words += fmt::format("stage {}, ", notes.stage.text);
  if (notes.operation == nullptr) return words + "no collective so far";
  const auto seconds = std::chrono::duration<double>(now - notes.since).count();
  return words + fmt::format("{} {} \"{}\" of {} ranks for {:.0f} s", notes.inside ? "inside of" : "out of",
                             notes.operation, notes.label.text, notes.ranks, seconds);
}

}  // namespace

void note_activity(const char* words) {
  activity = words;
  note_movement();
}

const char* current_activity() {
  return activity;
}

void note_movement() {
  movement.fetch_add(1, std::memory_order_relaxed);
}

void note_progress() {
  progress.fetch_add(1, std::memory_order_relaxed);
}

bool is_in_steps() {
  return steps_of_epoch > 0;
}

std::uint64_t movements() {
  return is_in_steps() ? progress : movement;
}

void note_step(std::int64_t epoch, std::int64_t step, std::int64_t steps) {
  current_epoch = epoch;
  current_step = step;
  steps_of_epoch = steps;
}

void note_stage(std::string_view stage) {
  note_movement();
  auto& notes = my_notes();
  const std::scoped_lock lock(notes.mutex);
  notes.stage = stage;
}

InCollective::InCollective(const char* operation, std::string_view label, int ranks) {
  note_movement();
  auto& notes = my_notes();
  const std::scoped_lock lock(notes.mutex);
  notes.operation = operation;
  notes.label = label;
  notes.ranks = ranks;
  notes.inside = true;
  notes.since = std::chrono::steady_clock::now();
}

InCollective::~InCollective() {
  note_movement();
  auto& notes = my_notes();
  const std::scoped_lock lock(notes.mutex);
  notes.inside = false;
  notes.since = std::chrono::steady_clock::now();
}

namespace {
std::string of_all_threads() {
  if (!is_in_steps()) return activity.load();
  return fmt::format("epoch {}, step {} of {}", current_epoch.load(), current_step.load(),
                     steps_of_epoch.load());
}
}  // namespace

std::vector<std::string> progress_lines() {
  const auto now = std::chrono::steady_clock::now();
  const auto place = of_all_threads();
  const std::scoped_lock lock(registry().mutex);
  std::vector<std::string> lines;
  for (auto& notes : registry().threads)
    if (notes.in_use)
      lines.push_back(fmt::format("{}{}{}", place, place.empty() ? "" : ", ", in_words(notes, now)));
  if (lines.empty()) lines.push_back(place);
  return lines;
}

namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string quiet_words(double seconds) {
  return fmt::format("{} for {:.3g} minute{}", is_in_steps() ? "no step has finished" : "nothing has moved",
                     seconds / 60, seconds == 60 ? "" : "s");
}

void tell(double seconds) {
  std::string text;
  for (const auto& line : progress_lines())
    text += fmt::format("espalier: rank {} on {}: {}: {}\n", failure_context().rank, failure_context().host,
                        quiet_words(seconds), line);
  write_to_stderr(text);
}

}  // namespace

Watchdog::Watchdog(double minutes, std::string key) : seconds_(60 * minutes), key_(std::move(key)) {
  if (minutes > 0) thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::watch() {
  double last_moved = seconds_now();
  auto seen = movements();
  bool told = false;
  std::unique_lock lock(mutex_);
  while (!ending_) {
    changed_.wait_for(lock, std::chrono::duration<double>(std::min(1.0, seconds_ / 4)));
    if (const auto moved = movements(); moved != seen) {
      seen = moved;
      last_moved = seconds_now();
      told = false;
    }
    const double quiet = seconds_now() - last_moved;
    if (ending_ || quiet < seconds_) continue;
    if (!told && !final_message_is_claimed()) tell(quiet);
    told = true;
    if (const char* consequence = noted_consequence(); quiet >= 2 * seconds_)
      fail_job(ExitCode::kInternal,
               fmt::format("{} ({} = {:.3g}); the job ends{}{}", quiet_words(quiet), key_, seconds_ / 60,
                           consequence[0] == '\0' ? "" : "; ", consequence));
  }
}

}  // namespace espalier
