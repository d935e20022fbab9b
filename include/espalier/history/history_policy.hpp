// Which embeddings a cache of history takes up, and which it drops (FreshGNN, section 4.1.1).
//
// A row of H[l] whose gradient is small is likely to change little until it is read again. After
// the backward pass of a batch each needed row of H[l], computed or cached, gets
//
//     score_v = || dLoss / dH[l](v) ||^2          float64; not a number comes last
//
// (after ReLU of its positive elements, where a gradient goes on, as in the backward pass)
//
// and with m needed rows the k with the smallest scores are stable, k = round(p_grad m), exactly:
//
//     k = (m P + 2^31) >> 32,   P = llrint(p_grad 2^32);   equal scores in the order of vertex ids
//
//     stable, computed    admitted, at age 0         stable, cached     stays as it is, and ages
//     others, computed    not admitted               others, cached     evicted
//
// A row that could be read and was computed by a draw (history.recompute) is both: admitted, or
// evicted.
//
// One quantile per batch and layer, so no rank asks another. Law: a function of the gradients, the
// vertices and p_grad only, the same bits for any number of threads and in every space. The sum of
// squares of a row that it goes by stands here, too.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "espalier/base/host_device.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/history/prune.hpp"

namespace espalier {

/// A needed row of H[l].
struct HistoryCandidate {
  std::uint64_t score = 0;     ///< the bits of a float64: numbers >= 0 compare as their bits do
  std::int64_t vertex = 0;     ///< global id
  std::int64_t place = 0;      ///< row k >= 0 of N[l], or ~j: row j of C[l] (PrunedLayer::place)
  bool recomputed = false;     ///< could be read, and was computed
  std::uint8_t zeros[7] = {};  ///< so that no byte that travels is left unwritten

  bool cached() const { return place < 0; }
  /// Was the row in the cache?
  bool seen() const { return cached() || recomputed; }
  friend bool operator==(const HistoryCandidate&, const HistoryCandidate&) = default;
};

/// Of what is not a number; more than that of infinity.
inline constexpr std::uint64_t kWorstScore = std::numeric_limits<std::uint64_t>::max();

/// The bits that a score compares by.
ESPALIER_HD inline std::uint64_t score_bits(double score) {
  return score >= 0 ? bit_cast<std::uint64_t>(score) : kWorstScore;
}

/// candidates[c], c < |D[l]|, resized, memory of the space: of column c, whose gradient is row c of
/// dh [|D[l]|, width]. `recomputed`: by position in F[l], memory of the space, or null: none. The
/// host does not wait.
void score_rows(const Cpu& cpu, const PrunedLayer& layer, ConstMatrixView<float> dh,
                Buffer<HistoryCandidate>& candidates, const std::uint8_t* recomputed = nullptr);
void score_rows(const Cuda& cuda, const PrunedLayer& layer, ConstMatrixView<float, Cuda> dh,
                DeviceArray<HistoryCandidate>& candidates, const std::uint8_t* recomputed = nullptr);

/// P of p_grad in [0, 1].
std::uint64_t stable_share(double p_grad);
/// k of m < 2^31 rows.
std::int64_t stable_count(std::int64_t m, std::uint64_t share);

/// What becomes of the rows, in the order of the candidates.
struct HistoryChoice {
  std::vector<HistoryCandidate> admitted;  ///< of computed rows: to be written
  std::vector<HistoryCandidate> evicted;   ///< of rows that were in the cache
};

/// Of candidates with distinct vertices, memory of the host; in linear time. Not collective.
HistoryChoice choose_history(std::span<const HistoryCandidate> candidates, std::uint64_t share);

// The sum of squares of a row in an order that a vector unit and the lanes of a warp have in
// common: eight partial sums, of the elements j mod 8, then halves onto halves.

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
