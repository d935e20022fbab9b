// Node-wise sampling for every space: node_wise.cpp and sampler_table.cu instantiate it.
#pragma once

#include "espalier/sample/type_runs.hpp"
#include "espalier/sparse/entries.hpp"
#include "expected_work.hpp"
#include "node_wise.hpp"
#include "window.hpp"

namespace espalier {

/// The draw of some rows: on the CPU by one thread, on a GPU of all of them.
template <class Index, class Space>
void draw_rows(const Space& space, const RowDraw<Index, Space>& draw, const LayerDraw& layer,
               const ColumnsOf& columns, const RowView<Index>* rows, const RowKey* keys, std::int64_t count,
               Entries<Index, Space>& out) {
  if (columns.begins == nullptr)
    draw.draw(space, layer, rows, keys, count, out);
  else
    draw_by_relation(space, draw, layer, columns, rows, keys, count, out);
}

/// All layers of all batches where every row lies on this rank: P is not formed. A batch goes
/// through all its layers while what it touches is in the cache.
template <class Index>
std::vector<Minibatch> sample_in_place(const Cpu& cpu, const DistCsr<Index>& a, const RowDraw<Index>& draw,
                                       std::span<const LayerDraw> layers, std::span<const SeedBatch> batches);

/// A RowDraw as the operation that the product applies where the row lies.
template <class Index, class Space>
class DrawOperation final : public RowOperation<Index, Space> {
 public:
  DrawOperation(const RowDraw<Index, Space>& draw, const LayerDraw& layer, const ColumnsOf& columns,
                Traffic& traffic)
      : draw_(draw), layer_(layer), columns_(columns), traffic_(traffic) {}
  bool has_values() const override { return draw_.has_values(); }
  void apply(const Space& space, const RowView<Index>* rows, const RowKey* keys, std::int64_t count,
             Entries<Index, Space>& out) const override {
    if constexpr (std::is_same_v<Space, Cpu>) {
      const auto fill = [&](std::int64_t first, std::int64_t last, Entries<Index>& piece) {
        draw_rows(Cpu{1}, draw_, layer_, columns_, rows + first, keys + first, last - first, piece);
      };
      collect_rows(space, count, fill, out);
    } else {
      draw_rows(space, draw_, layer_, columns_, rows, keys, count, out);
    }
    count_draw(rows, count, out.entries());
  }
  JoinPieces join() const override { return columns_.begins == nullptr ? draw_.join() : JoinPieces::kNever; }
  void apply_to_pieces(const Space& space, const RowView<Index>* rows, const HeldWholeRows& whole,
                       const RowKey* keys, std::int64_t count, Entries<Index, Space>& out) const override {
    if constexpr (std::is_same_v<Space, Cpu>)
      collect(space, rows, count, out, [&](std::int64_t first, std::int64_t last, Entries<Index>& piece) {
        draw_.draw_pieces(layer_, rows + first, whole, keys + first, last - first, piece);
      });
  }
  void merge(const Space& space, const RowView<Index>* rows, const RowSupport* supports, const RowKey* keys,
             std::int64_t count, Entries<Index, Space>& out) const override {
    if constexpr (std::is_same_v<Space, Cpu>)
      collect(space, rows, count, out, [&](std::int64_t first, std::int64_t last, Entries<Index>& piece) {
        draw_.merge(layer_, rows + first, supports + first, keys + first, last - first, piece);
      });
  }

 private:
  // Of pieces, by each holder: places in the whole row are all drawn, those of others passed over.
  template <class Fill>
  void collect(const Cpu& cpu, const RowView<Index>* rows, std::int64_t count, Entries<Index>& out,
               const Fill& fill) const {
    collect_rows(cpu, count, fill, out);
    count_draw(rows, count, std::max(out.entries(), draw_.scans() ? 0 : count * layer_.fanout));
  }
  void count_draw(const RowView<Index>* rows, std::int64_t count, std::int64_t picks) const {
    std::int64_t bytes = 0;
    if (std::is_same_v<Space, Cpu> && draw_.scans())
      for (std::int64_t r = 0; r < count; ++r) bytes += rows[r].size * std::int64_t{sizeof(float)};
    traffic_.count(MemoryStep::kDraw, {.rows = count, .entries = picks, .bytes = bytes});
  }

  const RowDraw<Index, Space>& draw_;
  LayerDraw layer_;
  ColumnsOf columns_;
  Traffic& traffic_;
};

template <class Index, class Space>
class NodeWise final : public SamplerOn<Space> {
 public:
  NodeWise(const SamplerKind& kind, const DistCsr<Index, Space>& a, const SamplerShape& shape,
           std::unique_ptr<RowDraw<Index, Space>> draw)
      : a_(a), shape_(shape), draw_(std::move(draw)), schedules_(choose_schedules(a, shape, kind)) {}

  std::vector<MinibatchOn<Space>> sample(const Space& space, std::span<const SeedBatch> batches,
                                         std::uint64_t seed, std::uint64_t epoch) override {
    const auto& layers = draws_of(space, seed, epoch);
    auto minibatches = sample_layers(space, layers, schedules_, batches);
    for (std::size_t k = 0; k < layers.size(); ++k) count_layer(k, minibatches);
    add_type_runs(space, a_.type_ends, batches, minibatches);
    for (auto& minibatch : minibatches) minibatch.adds_self = a_.adds_self;
    return minibatches;
  }

  std::vector<MinibatchOn<Space>> sample_layer(const Space& space, std::span<const SeedBatch> rows,
                                               std::uint64_t seed, std::uint64_t epoch,
                                               std::size_t k) override {
    const auto& layers = draws_of(space, seed, epoch);
    auto minibatches =
        sample_layers(space, std::span(layers).subspan(k, 1), std::span(schedules_).subspan(k, 1), rows);
    count_layer(0, minibatches);
    for (auto& minibatch : minibatches) minibatch.type_ends = a_.type_ends;
    return minibatches;
  }

  const std::vector<Schedule>& schedules() const override { return schedules_; }

 private:
  const std::vector<LayerDraw>& draws_of(const Space& space, std::uint64_t seed, std::uint64_t epoch) {
    if (relation_fanout_.empty())
      for (const auto& fanouts : shape_.relation_fanout) relation_fanout_.push_back({space, fanouts});
    if (const auto name = std::pair(seed, epoch); layers_.empty() || name != name_of_layers_) {
      name_of_layers_ = name;
      layers_.clear();
      keys_.clear();
      for (std::size_t k = 0; k < shape_.fanout.size(); ++k) add_layer(space, k);
    }
    return layers_;
  }

  void add_layer(const Space& space, std::size_t k) {
    RandomStream stream = {.seed = name_of_layers_.first,
                           .purpose = draw_->purpose(),
                           .epoch = name_of_layers_.second,
                           .layer = static_cast<std::uint64_t>(shape_.fanout.size() - k)};
    layers_.push_back({stream, most_picks(k), least_picks(k),
                       relation_fanout_.empty() ? nullptr : relation_fanout_[k].data()});
    if (!a_.columns.typed()) return;
    std::vector<StreamKey> keys;
    for (std::int64_t relation = 0; relation + 1 < a_.columns.begins.size(); ++relation) {
      stream.relation = static_cast<std::uint64_t>(relation);
      keys.push_back(key_of(stream));
    }
    keys_.push_back({space, std::move(keys)});
    layers_.back().keys = keys_.back().data();
  }

  std::vector<MinibatchOn<Space>> sample_layers(const Space& space, std::span<const LayerDraw> layers,
                                                std::span<const Schedule> schedules,
                                                std::span<const SeedBatch> batches) const {
    if constexpr (std::is_same_v<Space, Cpu>)
      if (a_.parts() == 1) return sample_in_place(space, a_, *draw_, layers, batches);
    WindowOn<Space> window(space, batches, layers.size());
    for (std::size_t k = 0; k < layers.size(); ++k) draw_layer(space, layers[k], schedules[k], window);
    return window.take_minibatches();
  }

  // P = Q A by the product's schedule, the draw on its finished rows, and their blocks.
  void draw_layer(const Space& space, const LayerDraw& layer, Schedule schedule,
                  WindowOn<Space>& window) const {
    const auto& frontier = window.frontier();
    auto picks =
        open_product(space, frontier, a_, schedule, shape_.label)
            ->apply(space, DrawOperation<Index, Space>(*draw_, layer, a_.columns.view(), a_.grid->traffic()));
    const SharedList<std::int64_t, Space> entries(
        space, read_at(space, picks.offsets.data(), frontier.offsets.host()));
    LayerOn<Space> blocks;
    blocks.ids.resize(picks.ids.size());
    if (draw_->has_values()) blocks.values = std::move(picks.values);
    auto* const means = draw_->has_values() ? nullptr : &blocks.values;
    blocks.typed = a_.columns.typed();
    if (blocks.typed) {
      Array<Space, Index> vertices;
      read_columns(space, a_.columns.view(), picks.offsets, picks.ids, vertices, blocks.relations, means);
      picks.ids = std::move(vertices);
    } else if (means != nullptr) {
      *means = mean_values(space, picks.offsets, entries.back());
    }
    auto next = extend(space, a_.rows(), frontier, picks.ids.data(), entries, blocks.ids.data());
    blocks.offsets = std::move(picks.offsets);
    window.add_layer(std::move(blocks), entries.host(), std::move(next));
  }

  // Of a row, or a relation's part of one; -1: any number.
  std::int64_t most_picks(std::size_t k) const {
    if (shape_.relation_fanout.empty()) return shape_.fanout[k];
    const auto& fanouts = shape_.relation_fanout[k];
    return std::ranges::min(fanouts) < 0 ? -1 : std::ranges::max(fanouts);
  }

  std::int64_t least_picks(std::size_t k) const {
    if (shape_.relation_fanout.empty()) return shape_.fanout[k];
    std::int64_t least = -1;
    for (const auto fanout : shape_.relation_fanout[k])
      if (fanout >= 0 && (least < 0 || fanout < least)) least = fanout;
    return least;
  }

  // What extracting the blocks of a layer does in memory, and drawing in place.
  void count_layer(std::size_t block, const std::vector<MinibatchOn<Space>>& minibatches) const {
    MemoryCounts counts;
    for (const auto& minibatch : minibatches) {
      const auto& b = minibatch.blocks[block];
      counts += {.rows = b.rows, .entries = b.entries(), .columns = b.columns};
      if (LocalIds::prefers_marks(a_.rows(), b.rows + b.entries())) counts.words += a_.rows() / 64 + 1;
    }
    auto& traffic = a_.grid->traffic();
    if (std::is_same_v<Space, Cpu> && a_.parts() == 1)
      traffic.count(MemoryStep::kDraw, {.rows = counts.rows, .entries = counts.entries});
    traffic.count(MemoryStep::kExtract, counts);
  }

  const DistCsr<Index, Space>& a_;
  SamplerShape shape_;
  std::vector<SharedList<std::int64_t, Space>> relation_fanout_;  // [layers], or none; made once
  // Of the epoch of a seed that was sampled last.
  std::pair<std::uint64_t, std::uint64_t> name_of_layers_;
  std::vector<LayerDraw> layers_;
  std::vector<SharedList<StreamKey, Space>> keys_;  // [layers][relations], where columns have types
  std::unique_ptr<RowDraw<Index, Space>> draw_;
  std::vector<Schedule> schedules_;
};

template <class Index, class Space>
std::unique_ptr<SamplerOn<Space>> make_node_wise(const std::string& kind, const DistCsr<Index, Space>& a,
                                                 const SamplerShape& shape,
                                                 std::unique_ptr<RowDraw<Index, Space>> draw) {
  return std::make_unique<NodeWise<Index, Space>>(sampler_kind_of(kind), a, shape, std::move(draw));
}

#define ESPALIER_INSTANTIATE_NODE_WISE(Index, Space)                         \
  template std::unique_ptr<SamplerOn<Space>> make_node_wise(                 \
      const std::string&, const DistCsr<Index, Space>&, const SamplerShape&, \
      std::unique_ptr<RowDraw<Index, Space>>);

}  // namespace espalier
