// FastGCN for every space (fastgcn.cpp says what is drawn). Picks do not depend on frontiers, so
// those of all batches and layers of a bulk are drawn together, in rounds. A *list* is the draws of
// one batch and layer, or of one relation of these, from one part of the axis of weights.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "layer_wise.hpp"
#include "spread_weights.hpp"

namespace espalier {

/// The draws of all lists of a bulk, round by round: while picks are missing, a point for each, on
/// the list's axis without what it took; a vertex that was hit before is dropped.
template <class Space>
class DrawRoundsOn;

template <>
class DrawRoundsOn<Cpu> {
 public:
  /// List k draws offsets[k+1] - offsets[k] of so many vertices, with the words of streams[k], from
  /// parts[k % parts.size()] of the axis.
  DrawRoundsOn(const Cpu& cpu, std::span<const KeyedStream> streams, const SharedList<std::int64_t>& offsets,
               const std::vector<AxisPart>& parts, std::int64_t vertices);
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
  DrawRoundsOn(const Cuda& cuda, std::span<const KeyedStream> streams,
               const SharedList<std::int64_t, Cuda>& offsets, const std::vector<AxisPart>& parts,
               std::int64_t vertices);
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

/// Appends the picks of a support that is taken whole, the same for every batch.
template <class Index>
void add_whole_support(std::span<const Interval> all, SamplerMode mode, std::uint64_t total,
                       LayerPicks<Index>& picks);

/// to[offsets[l] + k] = from[sources[l] + k] for the numbers of each list, below offsets[l+1].
template <class T>
void copy_lists(const Cpu&, const Buffer<T>& from, const SharedList<std::int64_t>& sources,
                const SharedList<std::int64_t>& offsets, Buffer<T>& to) {
  to.resize(offsets.back());
  for (std::int64_t list = 0; list < sources.size(); ++list)
    std::copy_n(from.data() + sources[list], offsets[list + 1] - offsets[list], to.data() + offsets[list]);
}
template <class T>
void copy_lists(const Cuda& cuda, const DeviceArray<T>& from, const SharedList<std::int64_t, Cuda>& sources,
                const SharedList<std::int64_t, Cuda>& offsets, DeviceArray<T>& to);

template <class Index, class Space>
class FastGcnDistribution final : public LayerDistribution<Index, Space> {
 public:
  /// Collective over the grid.
  FastGcnDistribution(const Space& space, const DistCsr<Index, Space>& m, const SamplerShape& shape)
      : m_(m),
        shape_(shape),
        label_(shape.label + "/draws"),
        weights_(space, m, fastgcn_weights(m.on_host(), shape.mode), cuts_of(m.on_host(), shape)) {
    LayerPicks<Index> whole;
    for (std::size_t part = 0; part < weights_.parts().size(); ++part) {
      whole_begins_.push_back(std::ssize(whole.columns));
      if (is_taken_whole(part))
        add_whole_support<Index>(weights_.all(space, part, "setup"), shape.mode, weights_.parts()[part].total,
                                 whole);
    }
    whole_columns_ = copy_to(space, std::span<const Index>(whole.columns));
    whole_factors_ = copy_to(space, std::span<const double>(whole.factors));
  }

  /// Draws for all layers of a bulk.
  void begin(const Space& space, std::span<const RandomStream> streams) override {
    const auto layers = shape_.fanout.size(), parts = weights_.parts().size();
    std::vector<KeyedStream> keyed;
    std::vector<std::int64_t> begins = {0};
    for (std::size_t layer = 1; layer <= layers; ++layer)
      for (auto stream : streams)
        for (std::size_t part = 0; part < parts; ++part) {
          stream.layer = layer;
          stream.relation = part;
          keyed.push_back(stream);
          begins.push_back(begins.back() +
                           (takes_all(layers - layer, part) ? 0 : fanout_of(layers - layer, part)));
        }
    DrawRoundsOn<Space> draws(space, keyed, {space, std::move(begins)}, weights_.parts(), m_.local.columns);
    drawn_ = {};
    while (draw_round(space, draws)) {
    }
    picks_ = draws.template picks<Index>(space, shape_.mode);
    if (whole_columns_.size() == 0) return;
    append(space, whole_columns_, picks_.columns);
    append(space, whole_factors_, picks_.factors);
  }

  LayerPicks<Index, Space> pick(const Space& space, Product<Index, Space>&,
                                const LayerInputOn<Space>& input) override {
    const auto batches = input.frontier.batches();
    const auto parts = weights_.parts().size();
    const auto layer = static_cast<std::size_t>(input.stream.layer);
    std::vector<std::int64_t> sources, begins = {0}, batch_begins = {0};
    for (std::int64_t b = 0; b < batches; ++b) {
      for (std::size_t part = 0; part < parts; ++part) {
        const bool whole = takes_all(shape_.fanout.size() - layer, part);
        const auto list =
            ((static_cast<std::int64_t>(layer) - 1) * batches + b) * std::ssize(weights_.parts()) +
            static_cast<std::int64_t>(part);
        sources.push_back(whole ? picks_.offsets.back() + whole_begins_[part] : picks_.offsets[list]);
        begins.push_back(begins.back() + picks_of_list(shape_.fanout.size() - layer, part));
      }
      batch_begins.push_back(begins.back());
    }
    LayerPicks<Index, Space> picks = {{space, std::move(batch_begins)}, {}, {}};
    const SharedList<std::int64_t, Space> from(space, std::move(sources)), to(space, std::move(begins));
    copy_lists(space, picks_.columns, from, to, picks.columns);
    copy_lists(space, picks_.factors, from, to, picks.factors);
    return picks;
  }

  SpreadDraws spread_draws() const override { return drawn_; }
  std::int64_t columns_of_layer(std::size_t k) const override {
    std::int64_t picks = 0;
    for (std::size_t part = 0; part < weights_.parts().size(); ++part) picks += picks_of_list(k, part);
    return picks;
  }

 private:
  // Part of the axis: all columns, or those of each relation.
  static std::vector<std::int64_t> cuts_of(const DistCsr<Index>& m, const SamplerShape& shape) {
    const auto begins = m.columns.begins.host();
    if (shape.relation_fanout.empty() || begins.empty()) return {0, m.local.columns};
    return {begins.begin(), begins.end()};
  }

  std::int64_t fanout_of(std::size_t k, std::size_t part) const {
    return shape_.relation_fanout.empty() ? shape_.fanout[k] : shape_.relation_fanout[k][part];
  }
  // Is the support taken whole? Then every batch has the same picks.
  bool takes_all(std::size_t k, std::size_t part) const {
    return fanout_of(k, part) < 0 || weights_.parts()[part].support <= fanout_of(k, part);
  }
  bool is_taken_whole(std::size_t part) const {
    bool whole = false;
    for (std::size_t k = 0; k < shape_.fanout.size(); ++k) whole |= takes_all(k, part);
    return whole;
  }
  std::int64_t picks_of_list(std::size_t k, std::size_t part) const {
    return takes_all(k, part) ? weights_.parts()[part].support : fanout_of(k, part);
  }

  // A round for all batches and layers; false: nothing was missing. Collective over the column.
  bool draw_round(const Space& space, DrawRoundsOn<Space>& draws) {
    auto missing = draws.missing();
    drawn_.points += missing;
    if (const int parts = m_.parts(); parts > 1) {
      missing = m_.grid->column_comm().host().all_reduce(missing, Reduction::kMax, label_);
      m_.grid->traffic().predict(label_, 2.0 * (parts - 1), 2 * 8 * crossing(parts));
    }
    if (missing == 0) return false;
    ++drawn_.rounds;
    draws.take(space, weights_.find(space, draws.next_points(space), label_));
    return true;
  }

  template <class Numbers>
  static void append(const Space& space, const Numbers& more, Numbers& to) {
    std::vector<Numbers> pieces(2);
    pieces[0] = std::move(to);
    copy_part(space, more, 0, static_cast<std::int64_t>(more.size()), pieces[1]);
    to = join(space, std::move(pieces));
  }

  const DistCsr<Index, Space>& m_;
  SamplerShape shape_;
  std::string label_;
  SpreadWeightsOn<Space> weights_;
  SpreadDraws drawn_;
  // The supports of the parts that a layer takes whole; part k's begins at whole_begins_[k].
  std::vector<std::int64_t> whole_begins_;
  Array<Space, Index> whole_columns_;
  Array<Space, double> whole_factors_;
  // Of a bulk: [layers][batches][parts], layer 1 first; then supports.
  LayerPicks<Index, Space> picks_;
};

}  // namespace espalier
