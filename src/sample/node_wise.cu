#include "device_row_draw.hpp"
#include "device_window.hpp"
#include "each_entry.hpp"

namespace espalier {

namespace {

// A DeviceRowDraw as the operation that the product applies where the row lies.
template <class Index>
class DrawOperation final : public DeviceRowOperation<Index> {
 public:
  DrawOperation(const DeviceRowDraw<Index>& draw, const LayerDraw& layer) : draw_(draw), layer_(layer) {}
  bool has_values() const override { return draw_.has_values(); }
  void apply(const Cuda& cuda, const RowView<Index>* rows, const RowKey* keys, std::int64_t count,
             DeviceRowEntries<Index>& out) const override {
    draw_.draw(cuda, layer_, rows, keys, count, out);
  }

 private:
  const DeviceRowDraw<Index>& draw_;
  LayerDraw layer_;
};

// Every pick of a row weighs 1 / |picked|.
DeviceArray<float> mean_values(const Cuda& cuda, const DeviceArray<std::int64_t>& row_offsets,
                               std::int64_t entries) {
  DeviceArray<float> values(static_cast<std::size_t>(entries));
  auto* to = values.data();
  const auto* offsets = row_offsets.data();
  for_each_entry(cuda, "mean_values", offsets, std::ssize(row_offsets) - 1, 0, entries,
                 [=] __device__(std::int64_t at, std::int64_t row) {
                   to[at] = mean_value(offsets[row + 1] - offsets[row]);
                 });
  return values;
}

template <class Index>
class NodeWise final : public DeviceSampler {
 public:
  NodeWise(const DeviceGrid& grid, const DeviceDistCsr<Index>& a, const SamplerShape& shape,
           const std::vector<Schedule>& schedules, std::unique_ptr<DeviceRowDraw<Index>> draw)
      : grid_(grid), a_(a), shape_(shape), schedules_(schedules), draw_(std::move(draw)) {}

  std::vector<MinibatchOn<Cuda>> sample(const Cuda& cuda, std::span<const SeedBatch> batches,
                                        std::uint64_t seed, std::uint64_t epoch) override {
    const DevicePurpose purpose("a window of minibatches");
    DeviceWindow window(cuda, batches, shape_.fanout.size());
    RandomStream stream = {.seed = seed, .purpose = Purpose::kSample, .epoch = epoch};
    for (std::size_t k = 0; k < shape_.fanout.size(); ++k) {
      stream.layer = shape_.fanout.size() - k;
      sample_layer(cuda, {stream, shape_.fanout[k]}, schedules_[k], window);
    }
    return window.take_minibatches();
  }

  const std::vector<Schedule>& schedules() const override { return schedules_; }

 private:
  void sample_layer(const Cuda& cuda, const LayerDraw& draw, Schedule schedule, DeviceWindow& window) const {
    const auto& frontier = window.frontier();
    DeviceRowEntries<Index> picks;
    const auto keys = window.keys(cuda);
    apply_product(cuda, grid_, keys.data(), frontier.rows(), a_, schedule, shape_.label,
                  DrawOperation<Index>(*draw_, draw), picks);
    const auto entries = offsets_at_batches(cuda, picks.offsets.data(), frontier);
    DeviceLayer layer;
    layer.indices.resize(picks.indices.size());
    auto next = extend(cuda, a_.host->rows(), frontier, StackedPicks<Index>{picks.indices.data(), entries},
                       layer.indices.data());
    layer.values =
        draw_->has_values() ? std::move(picks.values) : mean_values(cuda, picks.offsets, entries.back());
    layer.indptr = std::move(picks.offsets);
    window.add_layer(std::move(layer), entries, std::move(next));
  }

  const DeviceGrid& grid_;
  const DeviceDistCsr<Index>& a_;
  SamplerShape shape_;
  std::vector<Schedule> schedules_;
  std::unique_ptr<DeviceRowDraw<Index>> draw_;
};

}  // namespace

template <class Index>
std::unique_ptr<DeviceSampler> make_node_wise(const DeviceGrid& grid, const DeviceDistCsr<Index>& a,
                                              const SamplerShape& shape,
                                              const std::vector<Schedule>& schedules,
                                              std::unique_ptr<DeviceRowDraw<Index>> draw) {
  return std::make_unique<NodeWise<Index>>(grid, a, shape, schedules, std::move(draw));
}

#define ESPALIER_INSTANTIATE(Index)                                                                         \
  template std::unique_ptr<DeviceSampler> make_node_wise(const DeviceGrid&, const DeviceDistCsr<Index>&,    \
                                                         const SamplerShape&, const std::vector<Schedule>&, \
                                                         std::unique_ptr<DeviceRowDraw<Index>>);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
