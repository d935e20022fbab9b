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
//
// And counters of what sampling and fetching do in a rank's own memory, for simulations.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

// What sampling and fetching do in a rank's own memory, step by step: counters beside the ledger of
// bytes that cross between ranks. Sampling and fetching do hardly any arithmetic, so how often and
// how much they read and write is what their computing costs; a simulated machine, whose clock must
// be told, rates the steps (bench/simulated/memory_work.hpp). Here they are counted only.

/// Each of all batches of a rank in one pass.
enum class MemoryStep {
  kFindDistinct,   ///< rows: a list of ids; entries: the different ones, grouped by owner
  kGroupByOwner,   ///< rows: of Q, by the rank that serves them
  kKeys,           ///< rows: asked of me, with their batches
  kViewRows,       ///< rows: where those that I serve begin
  kTakeViews,      ///< rows: of Q, each the view of its distinct id
  kReply,          ///< rows: of my block, copied for others; bytes: of them
  kWholeRows,      ///< rows: served whole; bytes: of them
  kSizes,          ///< rows: whose sizes are sent or received
  kInOrder,        ///< rows: answers put into the order of Q; bytes: of them
  kDraw,           ///< rows; entries: picks; bytes: of weights, where all of a row are read
  kExtract,        ///< rows, entries, columns of blocks; words: of marks of all batches
  kGroupFeatures,  ///< rows: of H that are wanted; bytes: of their ids as they travel
  kReplyFeatures,  ///< rows: of H, copied for others; bytes: of them
  kPlaceFeatures,  ///< rows: of H, where they are wanted; bytes: of them, as stored and as float32
};
inline constexpr std::size_t kMemorySteps = 14;

/// What one step went through; fields that a step does not name are 0.
struct MemoryCounts {
  std::int64_t rows = 0, entries = 0, columns = 0, words = 0, bytes = 0;
  MemoryCounts& operator+=(const MemoryCounts& other) {
    rows += other.rows;
    entries += other.entries;
    columns += other.columns;
    words += other.words;
    bytes += other.bytes;
    return *this;
  }
};

/// Hears of every step when it is done, on the thread that did it.
using MemoryObserver = std::function<void(MemoryStep step, const MemoryCounts& counts)>;

/// The observer of this process, none at first. Not thread safe: for the start of a program.
inline MemoryObserver& memory_observer() {
  static MemoryObserver observer;
  return observer;
}

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

// ---- volumes ----
//
// What a collective books in the ledger (traffic.hpp), whichever library moves the data.

/// A larger message travels in pieces of this size.
inline constexpr std::int64_t kMessageBytes = std::int64_t{1} << 30;

/// {0, counts[0], counts[0] + counts[1], ...} times `item`: where pieces of ranks begin and end.
inline std::vector<std::int64_t> begins_of(std::span<const std::int64_t> counts, std::size_t item = 1) {
  std::vector<std::int64_t> begins = {0};
  for (const auto count : counts) begins.push_back(begins.back() + count * static_cast<std::int64_t>(item));
  return begins;
}

/// Each rank with all others: the same bytes to each and from each.
inline Volume all_gather_volume(std::int64_t bytes, int ranks) {
  const std::int64_t crossing = bytes * (ranks - 1);
  return {.messages = ranks - 1, .bytes_sent = crossing, .bytes_received = crossing, .rounds = 1};
}

/// Of rank `rank` in an all-gather of `bytes[r]` of each rank r, a broadcast of each.
inline Volume all_gather_v_volume(std::span<const std::int64_t> bytes, int rank) {
  Volume volume{.rounds = 1};
  const auto others = static_cast<std::int64_t>(bytes.size()) - 1;
  for (std::size_t root = 0; root < bytes.size(); ++root) {
    if (bytes[root] == 0) continue;
    if (static_cast<int>(root) == rank) {
      volume.messages += others;
      volume.bytes_sent += bytes[root] * others;
    } else {
      volume.bytes_received += bytes[root];
    }
  }
  return volume;
}

inline Volume all_reduce_volume(std::int64_t bytes, int ranks) {
  const std::int64_t crossing = 2 * bytes * (ranks - 1) / ranks;
  return {.messages = 2 * (ranks - 1),
          .bytes_sent = crossing,
          .bytes_received = crossing,
          .rounds = ranks > 1 ? 1 : 0};
}

inline Volume broadcast_volume(std::int64_t bytes, int ranks, bool root) {
  return root ? Volume{.messages = ranks - 1, .bytes_sent = bytes * (ranks - 1), .rounds = 1}
              : Volume{.bytes_received = bytes, .rounds = 1};
}

/// Of rank `rank`; counts in items of `item` bytes.
inline Volume all_to_all_volume(std::span<const std::int64_t> send_counts,
                                std::span<const std::int64_t> receive_counts, std::size_t item, int rank) {
  Volume volume{.rounds = send_counts.size() > 1 ? 1 : 0};
  for (std::size_t peer = 0; peer < send_counts.size(); ++peer) {
    if (static_cast<int>(peer) == rank) continue;
    const std::int64_t sent = send_counts[peer] * static_cast<std::int64_t>(item);
    volume.messages += (sent + kMessageBytes - 1) / kMessageBytes;
    volume.bytes_sent += sent;
    volume.bytes_received += receive_counts[peer] * static_cast<std::int64_t>(item);
  }
  return volume;
}

}  // namespace espalier
