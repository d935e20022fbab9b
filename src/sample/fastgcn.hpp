// FastGCN for every space (fastgcn.cpp says what is drawn). Picks do not depend on frontiers, so
// those of all batches and layers of a bulk are drawn together, in rounds. A *list* is the draws of
// one batch and layer.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "layer_wise.hpp"
#include "spread_weights.hpp"

namespace espalier {

/// The draws of all lists of a bulk, round by round: while picks are missing, a point each for
/// those, on the axis of the list without what it took in earlier rounds; a vertex that was hit
/// before is dropped.
template <class Space>
class DrawRoundsOn;

template <>
class DrawRoundsOn<Cpu> {
 public:
  /// List k draws offsets[k+1] - offsets[k] of so many vertices, with the words of streams[k];
  /// their weights sum to `total`.
  DrawRoundsOn(const Cpu& cpu, std::span<const RandomStream> streams, const SharedList<std::int64_t>& offsets,
               std::uint64_t total, std::int64_t vertices);
  ~DrawRoundsOn();
  /// How many picks are missing.
  std::int64_t missing() const;
  /// A point for each of them.
  Buffer<std::uint64_t> next_points(const Cpu& cpu);
  /// Takes the vertices that the points of the round hit, in their order.
  void take(const Cpu& cpu, const Buffer<Interval>& hits);
  /// When nothing is missing.
  template <class Index>
  LayerPicks<Index, Cpu> picks(const Cpu& cpu, SamplerMode mode) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The same on a GPU, bit for bit.
template <>
class DrawRoundsOn<Cuda> {
 public:
  DrawRoundsOn(const Cuda& cuda, std::span<const RandomStream> streams,
               const SharedList<std::int64_t, Cuda>& offsets, std::uint64_t total, std::int64_t vertices);
  ~DrawRoundsOn();
  std::int64_t missing() const;
  DeviceArray<std::uint64_t> next_points(const Cuda& cuda);
  void take(const Cuda& cuda, const DeviceArray<Interval>& hits);
  template <class Index>
  LayerPicks<Index, Cuda> picks(const Cuda& cuda, SamplerMode mode) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The weight of every vertex of my range (weight_ranges): the squared norm of its column, or the
/// norm in mode reference. Collective over the process column.
template <class Index>
std::vector<std::uint64_t> fastgcn_weights(const DistCsr<Index>& m, SamplerMode mode);

/// The picks of a support that is taken whole, the same for every batch.
template <class Index>
LayerPicks<Index> whole_support(std::span<const Interval> all, SamplerMode mode, std::uint64_t total);

template <class Index, class Space>
class FastGcnDistribution final : public LayerDistribution<Index, Space> {
 public:
  /// Collective over the grid.
  FastGcnDistribution(const Space& space, const DistCsr<Index, Space>& m, const SamplerShape& shape)
      : m_(m),
        mode_(shape.mode),
        label_(shape.label + "/draws"),
        weights_(space, m, fastgcn_weights(m.on_host(), shape.mode)) {
    for (const auto fanout : shape.fanout)
      if (takes_all(fanout) && all_.empty()) all_ = weights_.all(space, "setup");
  }

  /// Draws for all layers of a bulk.
  void begin(const Space& space, std::span<const RandomStream> streams,
             std::span<const std::int64_t> fanout) override {
    const auto layers = std::ssize(fanout);
    std::vector<RandomStream> keyed;
    std::vector<std::int64_t> begins = {0};
    for (std::int64_t layer = 1; layer <= layers; ++layer) {
      const auto of_layer = fanout[layers - layer];
      for (auto stream : streams) {
        stream.layer = static_cast<std::uint64_t>(layer);
        keyed.push_back(stream);
        begins.push_back(begins.back() + (takes_all(of_layer) ? 0 : of_layer));
      }
    }
    DrawRoundsOn<Space> draws(space, keyed, {space, std::move(begins)}, weights_.total(), m_.local.columns);
    points_ = rounds_ = 0;
    while (draw_round(space, draws)) {
    }
    picks_ = draws.template picks<Index>(space, mode_);
  }

  LayerPicks<Index, Space> pick(const Space& space, Product<Index, Space>&,
                                const LayerInputOn<Space>& input) override {
    const auto batches = input.frontier.batches();
    if (takes_all(input.fanout)) return take_all(space, batches);
    const auto first = static_cast<std::int64_t>(input.stream.layer - 1) * batches;
    return copy_lists_of_picks(space, first, batches);
  }

  bool normalizes_rows() const override { return false; }
  bool uses_sums() const override { return false; }

  /// How many points begin() had to resolve for this rank's batches, and in how many rounds.
  std::int64_t points() const { return points_; }
  std::int64_t rounds() const { return rounds_; }
  std::int64_t support() const { return weights_.support(); }
  /// Is the support taken whole? Then every batch has the same picks.
  bool takes_all(std::int64_t fanout) const { return fanout < 0 || weights_.support() <= fanout; }

 private:
  // One round for every batch and layer; false when nothing was missing anywhere. Collective over
  // the process column.
  bool draw_round(const Space& space, DrawRoundsOn<Space>& draws) {
    auto missing = draws.missing();
    points_ += missing;
    if (const int parts = m_.parts(); parts > 1) {
      missing = m_.grid->column_comm().host().all_reduce(missing, Reduction::kMax, label_);
      m_.grid->traffic().predict(label_, 2.0 * (parts - 1), 2 * 8 * crossing(parts));
    }
    if (missing == 0) return false;
    ++rounds_;
    draws.take(space, weights_.find(space, draws.next_points(space), label_));
    return true;
  }

  LayerPicks<Index, Space> take_all(const Space& space, std::int64_t batches) const {
    const auto whole = whole_support<Index>(all_, mode_, weights_.total());
    std::vector<Array<Space, Index>> columns;
    std::vector<Array<Space, double>> factors;
    std::vector<std::int64_t> begins = {0};
    for (std::int64_t b = 0; b < batches; ++b) {
      columns.push_back(copy_to(space, std::span<const Index>(whole.columns)));
      factors.push_back(copy_to(space, std::span<const double>(whole.factors)));
      begins.push_back(begins.back() + std::ssize(whole.columns));
    }
    return {{space, std::move(begins)}, join(space, std::move(columns)), join(space, std::move(factors))};
  }

  // The lists first .. first + count - 1 of picks_.
  LayerPicks<Index, Space> copy_lists_of_picks(const Space& space, std::int64_t first,
                                               std::int64_t count) const {
    const auto from = picks_.offsets[first];
    std::vector<std::int64_t> begins;
    for (std::int64_t b = 0; b <= count; ++b) begins.push_back(picks_.offsets[first + b] - from);
    LayerPicks<Index, Space> picks = {{space, std::move(begins)}, {}, {}};
    copy_part(space, picks_.columns, from, picks.offsets.back(), picks.columns);
    copy_part(space, picks_.factors, from, picks.offsets.back(), picks.factors);
    return picks;
  }

  const DistCsr<Index, Space>& m_;
  SamplerMode mode_;
  std::string label_;
  SpreadWeightsOn<Space> weights_;
  std::vector<Interval> all_;  // the whole support, where a layer takes it
  std::int64_t points_ = 0, rounds_ = 0;
  LayerPicks<Index, Space> picks_;  // of the current bulk: [layers][batches], layer 1 first
};

}  // namespace espalier
