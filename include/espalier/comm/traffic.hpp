// The ledger of bytes. Every collective of comm/ is given a label ("sample", "fetch", "reduce",
// ...) and books what crosses between ranks under it; what a rank sends to itself is not counted.
//
// What is counted, per rank:
//   all-to-all-v      the bytes to and from every other rank; a message per non-empty pair
//   all-reduce        2 n (p-1)/p bytes sent and received, the volume of a reduce-scatter and
//                     an all-gather
//   broadcast         n bytes received by every rank but the root; the root books (p-1) n sent
//   all-gather        the bytes of all other ranks received; own bytes times (p-1) sent
//   rounds            one for each of these in a group of several ranks, however many messages it
//                     is, also for a rank that has nothing to send: each may wait for the slowest
//
// Beside the counted volume stands what the alpha-beta model expects this rank to receive, where a
// caller knows (`predict`). Labels may have two parts, "sample/rows": a stage and its step.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "espalier/comm/memory_steps.hpp"

namespace espalier {

struct Volume {
  std::int64_t messages = 0;
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;
  std::int64_t rounds = 0;
  double predicted_messages = 0;
  double predicted_bytes = 0;  ///< received
  Volume& operator+=(const Volume& other) {
    messages += other.messages;
    bytes_sent += other.bytes_sent;
    bytes_received += other.bytes_received;
    rounds += other.rounds;
    predicted_messages += other.predicted_messages;
    predicted_bytes += other.predicted_bytes;
    return *this;
  }
};

/// What a rank did for those who asked it for rows, itself among them.
struct ServedLoad {
  std::int64_t rows = 0;     ///< asked for, or pieces of rows
  std::int64_t entries = 0;  ///< of the matrix in those
  std::int64_t picks = 0;    ///< made there
  ServedLoad& operator+=(const ServedLoad& other) {
    rows += other.rows;
    entries += other.entries;
    picks += other.picks;
    return *this;
  }
};

/// One rank's ledger, shared by all communicators of its grid. Belongs to one thread at a time.
class Traffic {
 public:
  void book(std::string_view label, const Volume& volume) {
    const auto found = volumes_.find(label);
    (found == volumes_.end() ? volumes_.emplace(label, Volume{}).first : found)->second += volume;
  }
  void predict(std::string_view label, double messages, double bytes) {
    book(label, {.predicted_messages = messages, .predicted_bytes = bytes});
  }
  /// Counts what a step did in memory.
  void count(MemoryStep step, const MemoryCounts& counts) {
    steps_[static_cast<std::size_t>(step)] += counts;
    if (memory_observer()) memory_observer()(step, counts);
  }
  /// Books what was done for a product of that label.
  void serve(const std::string& label, const ServedLoad& load) { served_[label] += load; }
  ServedLoad served(const std::string& label) const {
    const auto found = served_.find(label);
    return found == served_.end() ? ServedLoad() : found->second;
  }
  const MemoryCounts& of(MemoryStep step) const { return steps_[static_cast<std::size_t>(step)]; }

  Volume of(std::string_view label) const {
    const auto found = volumes_.find(label);
    return found == volumes_.end() ? Volume{} : found->second;
  }
  /// The sum over a stage and its steps: the label and all that begin with it and a slash.
  Volume of_stage(std::string_view stage) const {
    Volume sum;
    for (const auto& [label, volume] : volumes_)
      if (label == stage || (label.starts_with(stage) && label[stage.size()] == '/')) sum += volume;
    return sum;
  }
  const std::map<std::string, Volume, std::less<>>& all() const { return volumes_; }
  void clear() {
    volumes_.clear();
    served_.clear();
    steps_ = {};
  }
  /// Everything of another ledger, which is empty afterwards.
  void take_over(Traffic& other) {
    for (const auto& [label, volume] : other.volumes_) book(label, volume);
    for (const auto& [label, load] : other.served_) serve(label, load);
    for (std::size_t step = 0; step < steps_.size(); ++step) steps_[step] += other.steps_[step];
    other.clear();
  }

 private:
  std::map<std::string, Volume, std::less<>> volumes_;
  std::map<std::string, ServedLoad> served_;
  std::array<MemoryCounts, kMemorySteps> steps_ = {};
};

}  // namespace espalier
