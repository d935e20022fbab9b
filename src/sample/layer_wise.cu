#include "device_layer_wise.hpp"
#include "each_batch.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/sparse/select_columns.hpp"

namespace espalier {

namespace {

// What the entries of a layer are valued by.
struct EntryFactors {
  const std::int64_t* first_pick;  // [batches + 1]
  const double* factors;           // [picks]
  const std::int32_t* local;       // [picks] places in F[l-1]
};

// places: in, places in the list of the batch's picks; out, local ids. Calls write(entry, factor) for every entry.
template <class Write>
void for_each_entry(const Cuda& cuda, const char* name, std::span<const std::int64_t> entry_offsets,
                    const EntryFactors& of, std::int32_t* places, const Write& write) {
  DeviceArray<std::int64_t> device_offsets;
  upload(cuda, entry_offsets, device_offsets);
  for_each_in_batches(cuda, name, {0, std::ssize(entry_offsets) - 1}, entry_offsets, device_offsets.data(),
                      [=] __device__(std::int64_t batch, std::int64_t k) {
                        const auto pick = of.first_pick[batch] + places[k];
                        places[k] = of.local[pick];
                        write(k, of.factors[pick]);
                      });
}

// entries: null for a matrix without values, else `values` itself.
struct WriteValue {
  const float* entries;
  float* values;
  __device__ void operator()(std::int64_t k, double factor) const {
    values[k] = layer_value(layer_product(entries == nullptr ? 1.0f : entries[k], factor), 1.0);
  }
};

struct WriteProduct {
  const float* entries;
  double* products;
  __device__ void operator()(std::int64_t k, double factor) const {
    products[k] = layer_product(entries == nullptr ? 1.0f : entries[k], factor);
  }
};

void normalize(const Cuda& cuda, const double* products, const std::int64_t* indptr, std::int64_t rows,
               float* values) {
  for_each(cuda, "normalize_layer", rows, [=] __device__(std::int64_t row) {
    const auto begin = indptr[row], end = indptr[row + 1];
    double sum = 0;
    for (auto k = begin; k < end; ++k) sum += products[k];
    for (auto k = begin; k < end; ++k) values[k] = layer_value(products[k], sum);
  });
}

// The blocks of a layer from the entries of its rows in the picked columns.
DeviceLayer make_layer(const Cuda& cuda, SelectedEntries entries, std::span<const std::int64_t> entry_offsets,
                       const EntryFactors& of, bool normalizes_rows) {
  const bool has_values = !entries.values.empty();
  DeviceLayer layer;
  layer.indptr = std::move(entries.offsets);
  layer.indices = std::move(entries.places);
  layer.values = std::move(entries.values);
  layer.values.resize(layer.indices.size());
  const float* of_matrix = has_values ? layer.values.data() : nullptr;
  if (!normalizes_rows) {
    for_each_entry(cuda, "layer_values", entry_offsets, of, layer.indices.data(),
                   WriteValue{of_matrix, layer.values.data()});
    return layer;
  }
  DeviceArray<double> products(layer.indices.size());
  for_each_entry(cuda, "layer_products", entry_offsets, of, layer.indices.data(),
                 WriteProduct{of_matrix, products.data()});
  normalize(cuda, products.data(), layer.indptr.data(), static_cast<std::int64_t>(layer.indptr.size()) - 1,
            layer.values.data());
  return layer;
}

template <class Index>
class DeviceLayerWise final : public DeviceSampler {
 public:
  DeviceLayerWise(const DeviceDistCsr<Index>& m, const SamplerShape& shape,
                  std::unique_ptr<DeviceLayerDistribution<Index>> distribution)
      : m_(m), shape_(shape), distribution_(std::move(distribution)) {
    ESPALIER_CHECK(m.host->partition.parts() == 1, "{} block rows, and rows of one only are on this GPU",
                   m.host->partition.parts());
    schedules_ = layer_wise_schedules(*m.host, shape, distribution_->uses_sums());
  }

  std::vector<MinibatchOn<Cuda>> sample(const Cuda& cuda, std::span<const SeedBatch> batches,
                                        std::uint64_t seed, std::uint64_t epoch) override {
    const DevicePurpose purpose("a window of minibatches");
    if (batches.empty()) return {};
    DeviceWindow window(cuda, batches, shape_.fanout.size());
    RandomStream stream = {.seed = seed, .purpose = Purpose::kSample, .epoch = epoch};
    Buffer<std::int64_t> seeds;
    std::vector<RandomStream> streams;
    for (const auto& batch : batches) {
      seeds.push_back(std::ssize(batch.seeds));
      streams.push_back(stream);
      streams.back().batch = static_cast<std::uint64_t>(batch.number);
    }
    const auto device_seeds = upload(cuda, seeds);
    distribution_->begin(cuda, streams, shape_.fanout);
    const auto layers = std::ssize(shape_.fanout);
    for (auto layer = layers; layer >= 1; --layer) {
      stream.layer = static_cast<std::uint64_t>(layer);
      sample_layer(cuda, stream, shape_.fanout[static_cast<std::size_t>(layers - layer)], device_seeds.data(),
                   window);
    }
    return window.take_minibatches();
  }

  const std::vector<Schedule>& schedules() const override { return schedules_; }

 private:
  void sample_layer(const Cuda& cuda, const RandomStream& stream, std::int64_t fanout,
                    const std::int64_t* seeds, DeviceWindow& window) const {
    const auto& frontier = window.frontier();
    const auto pieces = cut_rows(cuda, m_.local, frontier.vertices.data(), frontier.rows(),
                                 frontier.device_offsets.data(), frontier.batches());
    const auto picks = distribution_->pick(cuda, {frontier, pieces, window.numbers(), seeds, stream, fanout});
    SelectedEntries entries;
    select_columns(cuda, m_.local, pieces, picks.columns.data(), picks.offsets, picks.device_offsets.data(),
                   entries);
    DeviceArray<std::int32_t> local(picks.columns.size());
    auto next = extend(cuda, m_.host->rows(), frontier,
                       StackedPicks<Index>{picks.columns.data(), picks.offsets}, local.data());
    const auto entry_offsets = offsets_at_batches(cuda, entries.offsets.data(), frontier);
    const EntryFactors of = {picks.device_offsets.data(), picks.factors.data(), local.data()};
    window.add_layer(
        make_layer(cuda, std::move(entries), entry_offsets, of, distribution_->normalizes_rows()),
        entry_offsets, std::move(next));
  }

  const DeviceDistCsr<Index>& m_;
  SamplerShape shape_;
  std::unique_ptr<DeviceLayerDistribution<Index>> distribution_;
  std::vector<Schedule> schedules_;
};

}  // namespace

template <class Index>
std::unique_ptr<DeviceSampler> make_layer_wise(const DeviceDistCsr<Index>& m, const SamplerShape& shape,
                                               std::unique_ptr<DeviceLayerDistribution<Index>> distribution) {
  return std::make_unique<DeviceLayerWise<Index>>(m, shape, std::move(distribution));
}

#define ESPALIER_INSTANTIATE(Index)                                                                         \
  template std::unique_ptr<DeviceSampler> make_layer_wise(const DeviceDistCsr<Index>&, const SamplerShape&, \
                                                          std::unique_ptr<DeviceLayerDistribution<Index>>);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
