// Where this process is, for the watchdog to say when nothing moves: the epoch and step, and of each thread that
// communicates the stage it is in and its last collective operation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

/// Training is in step `step` (from 1) of `steps` of epoch `epoch`.
void note_step(std::int64_t epoch, std::int64_t step, std::int64_t steps);

/// The calling thread is in this stage: "total/sample".
void note_stage(std::string_view stage);

/// The calling thread is inside of a collective operation while this lives.
class InCollective {
 public:
  /// `operation` is a literal: "all-reduce"; `label` what it is booked under; `ranks` how many take part.
  InCollective(const char* operation, std::string_view label, int ranks);
  ~InCollective();
  InCollective(const InCollective&) = delete;
  InCollective& operator=(const InCollective&) = delete;
};

/// One line per thread: "epoch 3, step 41 of 117, stage total/fetch, inside of all-to-all-v "fetch" of 4 ranks for 12 s".
std::vector<std::string> whereabouts();

}  // namespace espalier
