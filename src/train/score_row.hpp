// The sum of squares of a row in an order that a vector unit and the lanes of a warp have in
// common: eight partial sums, of the elements j mod 8, then halves onto halves.
#pragma once

#include <cstdint>

#include "espalier/base/host_device.hpp"
#include "espalier/train/history_policy.hpp"

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

/// What is known of the row of a place.
ESPALIER_HD inline HistoryCandidate candidate_of(const PrunedLayer& layer, std::int64_t place,
                                                 std::uint64_t score, const std::uint8_t* recomputed) {
  if (place < 0) return {score, layer.cached.vertices[~place], place, false};
  const bool drawn = recomputed != nullptr && recomputed[layer.computed.positions[place]] != 0;
  return {score, layer.computed.vertices[place], place, drawn};
}

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
