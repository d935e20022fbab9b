// The sum of squares of a row in an order that a vector unit and the lanes of a warp have in
// common: eight partial sums, of the elements j mod 8, then halves onto halves.
#pragma once

#include <cstdint>

#include "espalier/base/host_device.hpp"
#include "espalier/history/history_policy.hpp"

namespace espalier {

inline constexpr int kScoreLanes = 8;

/// One of the eight.
ESPALIER_HD inline double partial_score(const float* row, std::int64_t columns, int lane) {
  double sum = 0;
  for (std::int64_t j = lane; j < columns; j += kScoreLanes) {
    const auto x = static_cast<double>(row[j]);
    sum += x * x;
  }
  return sum;
}

/// What is known of the rows of a layer: memory of the space.
struct KnownRows {
  const std::int64_t *place, *cached, *computed, *positions;
  const std::uint8_t* recomputed;  ///< by position, or null: none

  KnownRows(const PrunedLayer& layer, const std::uint8_t* drawn)
      : place(layer.place.data()),
        cached(layer.cached.vertices.data()),
        computed(layer.computed.vertices.data()),
        positions(layer.computed.positions.data()),
        recomputed(drawn) {}

  ESPALIER_HD HistoryCandidate candidate(std::int64_t row, std::uint64_t score) const {
    const auto at = place[row];
    if (at < 0) return {score, cached[~at], at, false};
    return {score, computed[at], at, recomputed != nullptr && recomputed[positions[at]] != 0};
  }
};

/// All of them, on the CPU; a warp adds lane k and lane k ^ distance in the same order.
inline double score_of_row(const float* row, std::int64_t columns) {
  double sums[kScoreLanes] = {};
  std::int64_t j = 0;
  for (; j + kScoreLanes <= columns; j += kScoreLanes)
    for (int lane = 0; lane < kScoreLanes; ++lane) {
      const auto x = static_cast<double>(row[j + lane]);
      sums[lane] += x * x;
    }
  for (; j < columns; ++j) {
    const auto x = static_cast<double>(row[j]);
    sums[j % kScoreLanes] += x * x;
  }
  for (int distance = kScoreLanes / 2; distance > 0; distance /= 2)
    for (int lane = 0; lane < distance; ++lane) sums[lane] += sums[lane + distance];
  return sums[0];
}

}  // namespace espalier
