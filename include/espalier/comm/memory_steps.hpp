// What sampling and fetching do in a rank's own memory, step by step: counters beside the ledger of
// bytes that cross between ranks. Sampling and fetching do hardly any arithmetic, so how often and
// how much they read and write is what their computing costs; a simulated machine, whose clock must
// be told, rates the steps (bench/simulated/memory_work.hpp). Here they are counted only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace espalier {

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

}  // namespace espalier
