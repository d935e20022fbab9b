// What history has spared (train/training_history.hpp).
#pragma once

#include <cstdint>

#include "espalier/comm/communicator.hpp"

namespace espalier {

/// Of some minibatches.
struct HistoryCounts {
  std::int64_t needed = 0;                       ///< rows of H[1] .. H[L-1] that layers read
  std::int64_t hits = 0;                         ///< of them those that history had
  std::int64_t recomputed = 0;                   ///< and those that it had, and that were computed
  std::int64_t inputs_before = 0;                ///< input rows of the sample
  std::int64_t inputs = 0;                       ///< and when it is pruned
  std::int64_t entries_before = 0, entries = 0;  ///< the same of edges
  std::int64_t written = 0, evicted = 0;         ///< rows, as minibatches asked for

  /// Was the sample drawn, not only what is left of it (history.draw)?
  bool knows_sample() const { return inputs_before >= inputs; }

  void add(const HistoryCounts& other);
};

/// Bytes of input rows that other ranks own, and of the ids that they are asked for by, that were
/// not moved: those of the stage `fetch` are fewer by the sum of the three than without history and
/// history.memory (but for corrections and gradients of embeddings).
struct SavedBytes {
  std::int64_t pruned = 0;   ///< of the sample, and not of what history has left of it
  std::int64_t kept = 0;     ///< of what was left, those of which a copy was here
  std::int64_t history = 0;  ///< at most 0: what history moved for that, fetch/history

  bool any() const { return pruned != 0 || kept != 0 || history != 0; }
  void add(const SavedBytes& other) {
    pruned += other.pruned;
    kept += other.kept;
    history += other.history;
  }
};

/// Collective. The sum over all ranks.
SavedBytes sum_over_ranks(const SavedBytes& mine, const Communicator& comm);
HistoryCounts sum_over_ranks(const HistoryCounts& mine, const Communicator& comm);

}  // namespace espalier
