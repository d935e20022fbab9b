// Layer-wise sampling for every space: layer_wise.cpp and layer_wise.cu instantiate it.
#pragma once

#include "espalier/sample/type_runs.hpp"
#include "expected_work.hpp"
#include "layer_wise.hpp"
#include "window.hpp"

namespace espalier {

/// The blocks of a layer from the entries of its frontier's rows in the picked columns, which are
/// those of batch b between offsets[b] and offsets[b+1]: places in the batch's picks become places
/// in F[l-1], local[pick], and values are multiplied by the factors. `rows`: where batches begin.
template <class Index>
LayerOn<Cpu> value_layer(const Cpu& cpu, Entries<std::int32_t> entries,
                         const SharedList<std::int64_t>& offsets, const SharedList<std::int64_t>& rows,
                         const LayerPicks<Index>& picks, const std::int32_t* local, bool normalizes_rows);
template <class Index>
LayerOn<Cuda> value_layer(const Cuda& cuda, Entries<std::int32_t, Cuda> entries,
                          const SharedList<std::int64_t, Cuda>& offsets,
                          const SharedList<std::int64_t, Cuda>& rows, const LayerPicks<Index, Cuda>& picks,
                          const std::int32_t* local, bool normalizes_rows);

/// The relation of every entry, beside entries.ids, which are places in the batch's picks.
template <class Index>
Buffer<std::uint8_t> relations_of(const Cpu& cpu, const ColumnsOf& columns,
                                  const Entries<std::int32_t>& entries,
                                  const SharedList<std::int64_t>& offsets, const LayerPicks<Index>& picks);
template <class Index>
DeviceArray<std::uint8_t> relations_of(const Cuda& cuda, const ColumnsOf& columns,
                                       const Entries<std::int32_t, Cuda>& entries,
                                       const SharedList<std::int64_t, Cuda>& offsets,
                                       const LayerPicks<Index, Cuda>& picks);

/// The vertices of columns.
template <class Index>
Buffer<Index> vertices_of(const Cpu& cpu, const ColumnsOf& columns, const Buffer<Index>& picks);
template <class Index>
DeviceArray<Index> vertices_of(const Cuda& cuda, const ColumnsOf& columns, const DeviceArray<Index>& picks);

template <class Index, class Space>
class LayerWise final : public SamplerOn<Space> {
 public:
  LayerWise(const SamplerKind& kind, const DistCsr<Index, Space>& m, const SamplerShape& shape,
            std::unique_ptr<LayerDistribution<Index, Space>> distribution)
      : kind_(kind),
        m_(m),
        shape_(shape),
        distribution_(std::move(distribution)),
        schedules_(choose_schedules(m, shape, kind)) {}

  std::vector<MinibatchOn<Space>> sample(const Space& space, std::span<const SeedBatch> batches,
                                         std::uint64_t seed, std::uint64_t epoch) override {
    drawn_ = {};
    const auto together = layer_wise_batches_together(space, m_.parts(), std::ssize(batches));
    if (together >= std::ssize(batches)) return sample_together(space, batches, seed, epoch);
    std::vector<MinibatchOn<Space>> all;
    for (; !batches.empty(); batches = batches.subspan(std::min<std::size_t>(together, batches.size())))
      std::ranges::move(
          sample_together(space, batches.first(std::min<std::size_t>(together, batches.size())), seed, epoch),
          std::back_inserter(all));
    return all;
  }

  const std::vector<Schedule>& schedules() const override { return schedules_; }
  SpreadDraws spread_draws() const override { return drawn_; }
  std::int64_t columns_of_layer(std::size_t k) const override { return distribution_->columns_of_layer(k); }

 private:
  std::vector<MinibatchOn<Space>> sample_together(const Space& space, std::span<const SeedBatch> batches,
                                                  std::uint64_t seed, std::uint64_t epoch) {
    const auto layers = shape_.fanout.size();
    WindowOn<Space> window(space, batches, layers);
    RandomStream stream = {.seed = seed, .purpose = Purpose::kSample, .epoch = epoch};
    std::vector<RandomStream> streams;
    std::vector<std::int64_t> seeds;
    for (const auto& batch : batches) {
      seeds.push_back(std::ssize(batch.seeds()));
      streams.push_back(stream);
      streams.back().batch = static_cast<std::uint64_t>(batch.number);
    }
    const SharedList<std::int64_t, Space> seed_counts(space, std::move(seeds));
    if (fanouts_.empty()) read_fanouts(space);
    distribution_->begin(space, streams);
    const auto drawn = distribution_->spread_draws();
    drawn_ = {drawn_.points + drawn.points, std::max(drawn_.rounds, drawn.rounds)};
    for (std::size_t k = 0; k < layers; ++k) {
      if (k > 0 && kind_.induces) {  // the blocks of all layers are one
        window.repeat_layer();
        continue;
      }
      stream.layer = layers - k;
      draw_layer(space, {window.frontier(), seed_counts, stream, fanouts_[k]}, schedules_[k], window);
    }
    auto minibatches = window.take_minibatches();
    add_type_runs(space, m_.type_ends, batches, minibatches);
    for (auto& minibatch : minibatches) minibatch.adds_self = m_.adds_self;
    return minibatches;
  }

  void read_fanouts(const Space& space) {
    for (std::size_t k = 0; k < shape_.fanout.size(); ++k) {
      fanouts_.push_back({shape_.fanout[k], {}, m_.columns.view()});
      if (!shape_.relation_fanout.empty()) fanouts_[k].of_relations = {space, shape_.relation_fanout[k]};
    }
  }

  void draw_layer(const Space& space, const LayerInputOn<Space>& input, Schedule schedule,
                  WindowOn<Space>& window) const {
    const auto& frontier = window.frontier();
    const auto product = open_product(space, frontier, m_, schedule, shape_.label);
    const auto picks = distribution_->pick(space, *product, input);
    auto entries = product->columns(space, picks.columns.data(), picks.offsets);
    Array<Space, std::int32_t> local(picks.columns.size());
    const SharedList<std::int64_t, Space> offsets(
        space, read_at(space, entries.offsets.data(), frontier.offsets.host()));
    const bool typed = m_.columns.typed();
    Array<Space, Index> vertices;
    Array<Space, std::uint8_t> relations;
    if (typed) {
      vertices = vertices_of(space, m_.columns.view(), picks.columns);
      relations = relations_of(space, m_.columns.view(), entries, offsets, picks);
    }
    auto next = extend(space, m_.rows(), frontier, (typed ? vertices : picks.columns).data(), picks.offsets,
                       local.data());
    auto layer = value_layer(space, std::move(entries), offsets, frontier.offsets, picks, local.data(),
                             distribution_->normalizes_rows());
    layer.relations = std::move(relations);
    layer.typed = typed;
    window.add_layer(std::move(layer), offsets.host(), std::move(next));
  }

  const SamplerKind& kind_;
  const DistCsr<Index, Space>& m_;
  SamplerShape shape_;
  std::vector<LayerFanoutOn<Space>> fanouts_;  // [layers]; made once
  std::unique_ptr<LayerDistribution<Index, Space>> distribution_;
  std::vector<Schedule> schedules_;
  SpreadDraws drawn_;  // of the last sample()
};

template <class Index, class Space>
std::unique_ptr<SamplerOn<Space>> make_layer_wise(
    const std::string& kind, const DistCsr<Index, Space>& m, const SamplerShape& shape,
    std::unique_ptr<LayerDistribution<Index, Space>> distribution) {
  return std::make_unique<LayerWise<Index, Space>>(sampler_kind_of(kind), m, shape, std::move(distribution));
}

#define ESPALIER_INSTANTIATE_LAYER_WISE(Index, Space)                        \
  template std::unique_ptr<SamplerOn<Space>> make_layer_wise(                \
      const std::string&, const DistCsr<Index, Space>&, const SamplerShape&, \
      std::unique_ptr<LayerDistribution<Index, Space>>);

}  // namespace espalier
