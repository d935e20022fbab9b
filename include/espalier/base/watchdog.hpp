// Notes of where a process is, and a thread that notices when nothing moves any more. After
// `minutes` in which no step was finished, or before the first step nothing was noted at all, it
// prints where this process is (the notes), on every rank that can still print, so that the one at
// fault is seen by its place or by its silence; after as long again it ends the job, so that a
// batch system can start it anew. It waits for no lock that a thread could keep while it hangs, nor
// for who reads stderr.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace espalier {

// Where this process is, for the watchdog to say when nothing moves: the epoch and step, or what is
// done before there are any, and of each thread that communicates the stage it is in and its last
// collective operation. Notes are movements, and are counted.

/// What the process does outside of steps, in words that follow "while": "reading the features". A
/// literal.
void note_activity(const char* words);

/// The words of the last note, "" before any. A signal handler may ask.
const char* current_activity();

/// Training is in step `step` (from 1) of `steps` of epoch `epoch`.
void note_step(std::int64_t epoch, std::int64_t step, std::int64_t steps);

/// The calling thread is in this stage: "total/sample".
void note_stage(std::string_view stage);

/// The calling thread is inside of a collective operation while this lives.
class InCollective {
 public:
  /// `operation` is a literal: "all-reduce"; `label` what it is booked under; `ranks` how many take
  /// part.
  InCollective(const char* operation, std::string_view label, int ranks);
  ~InCollective();
  InCollective(const InCollective&) = delete;
  InCollective& operator=(const InCollective&) = delete;
};

/// A part of a file was read or written: something moved.
void note_movement();

/// A step, or a layer of evaluation, is done.
void note_progress();

/// Is there a step that progress can be expected of?
bool is_in_steps();

/// A count that stands still while nothing moves: of progress while in steps, of all notes before.
/// Without locks.
std::uint64_t movements();

/// One line per thread: "epoch 3, step 41 of 117, stage total/fetch, inside of all-to-all-v "fetch"
/// of 4 ranks for 12 s", or "reading the features, inside of ...".
std::vector<std::string> progress_lines();

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
