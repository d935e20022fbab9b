// The notes are atomics and names of bounded length, so that a signal handler may read them.
#include "espalier/base/progress.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <mutex>

namespace espalier {

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

}  // namespace espalier
