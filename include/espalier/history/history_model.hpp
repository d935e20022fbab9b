// What the model expects of a cache of history that is spread over p ranks, as a rank receives it
// where every rank does the same: keys lie evenly, as their shards are those of a hash.
#pragma once

#include "espalier/product/schedule.hpp"

namespace espalier {

/// Bytes of a key, and of what travels beside a written row: key, score, batch.
inline constexpr double kHistoryKeyBytes = 8, kHistoryWriteBytes = 24;

/// Of items that go to their shards' ranks, and of what comes back for each: counts,
/// items, answers.
inline Cost history_question_cost(int ranks, double items, double answer_bytes) {
  const double others = ranks - 1;
  return {3 * others, 8 * others + items * others / ranks * (kHistoryKeyBytes + answer_bytes),
          ranks > 1 ? 3.0 : 0.0};
}

/// Which of so many distinct vertices hit: an id there, a byte back.
inline Cost history_find_cost(int ranks, double vertices) {
  return history_question_cost(ranks, vertices, 1);
}

/// So many distinct rows: a key there, a row back.
inline Cost history_read_cost(int ranks, double rows, double row_bytes) {
  return history_question_cost(ranks, rows, row_bytes);
}

/// Rows that are written, of which those that will be held travel, and rows that are evicted:
/// counts of both, what stands beside the rows, a byte for each back, the rows, keys.
inline Cost history_write_cost(int ranks, double writes, double rows, double evictions, double row_bytes) {
  const double others = ranks - 1;
  return {
      6 * others,
      16 * others + others / ranks *
                        (writes * (kHistoryWriteBytes + 1) + rows * row_bytes + evictions * kHistoryKeyBytes),
      ranks > 1 ? 6.0 : 0.0};
}

}  // namespace espalier
