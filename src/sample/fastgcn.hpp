// The distribution of FastGCN, and its picks on the host (fastgcn.cpp says what is drawn). Picks do not depend on
// frontiers, so those of all batches and layers of a bulk are made together.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "espalier/sample/draw.hpp"
#include "layer_wise.hpp"
#include "spread_weights.hpp"

namespace espalier {

/// The draws of one batch and layer.
class BatchDraws {
 public:
  BatchDraws(const RandomStream& stream, std::int64_t picks) : words_(stream), missing_(picks) {}

  std::int64_t missing() const { return missing_; }
  const std::vector<Interval>& in_order() const { return in_order_; }

  /// One point for each missing pick on the axis 0 .. total without the removed intervals, as points of the whole axis.
  void next_points(std::uint64_t total, std::uint64_t* points);
  /// Takes the vertices that the points of a round hit, in the order of the points.
  void take(const Interval* hits);

 private:
  RandomWords words_;
  std::int64_t missing_;
  std::vector<Interval> in_order_;
  std::vector<Interval> removed_;  // ascending: what earlier rounds took
  CutAxis axis_;                   // without them
};

/// Draws from the global distribution of a matrix.
template <class Index>
class FastGcnDraws {
 public:
  /// Collective over the grid.
  FastGcnDraws(const DistCsr<Index>& m, const SamplerShape& shape);

  /// Draws for all layers of a bulk; `streams[b]` is keyed by seed, epoch and batch. Collective over the process column.
  void begin(const Cpu& cpu, std::span<const RandomStream> streams, std::span<const std::int64_t> fanout);
  /// The picks of one batch of the bulk.
  LayerPicks<Index> picks(std::size_t batch, std::int64_t layer, std::int64_t fanout) const;

  /// How many points begin() had to resolve for this rank's batches, and in how many rounds.
  std::int64_t points() const { return points_; }
  std::int64_t rounds() const { return rounds_; }

  const SpreadWeights& weights() const { return weights_; }
  /// Is the support taken whole? Then every batch has the same picks.
  bool takes_all(std::int64_t fanout) const { return fanout < 0 || weights_.support() <= fanout; }
  LayerPicks<Index> whole_support() const { return picks_of(all_, true); }

 private:
  // One round for every batch and layer; false when nothing was missing anywhere. Collective over the process
  // column.
  bool draw_round(const Cpu& cpu);
  LayerPicks<Index> picks_of(const std::vector<Interval>& in_order, bool whole) const;

  const DistCsr<Index>& m_;
  SamplerMode mode_;
  std::string label_;
  SpreadWeights weights_;
  std::vector<Interval> all_;  // the whole support, where a layer takes it
  std::size_t batches_ = 0;
  std::int64_t points_ = 0, rounds_ = 0;
  std::vector<BatchDraws> draws_;  // [layers][batches] of the current bulk, layer 1 first
};

}  // namespace espalier
