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
// vertices and p_grad only, the same bits for any number of threads and in every space.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "espalier/base/bit_cast.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/history/prune.hpp"

namespace espalier {

/// A needed row of H[l].
struct HistoryCandidate {
  std::uint64_t score = 0;  ///< the bits of a float64: numbers >= 0 compare as their bits do
  std::int64_t vertex = 0;  ///< global id
  std::int64_t place = 0;   ///< row k >= 0 of N[l], or ~j: row j of C[l] (PrunedLayer::place)
  bool recomputed = false;  ///< could be read, and was computed

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

}  // namespace espalier
