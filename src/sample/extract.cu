#include "device_window.hpp"
#include "each_batch.hpp"
#include "espalier/base/error.hpp"

namespace espalier {

DeviceWindow::DeviceWindow(const Cuda& cuda, std::span<const SeedBatch> batches, std::size_t layers)
    : memory_(std::make_shared<Memory>()), minibatches_(batches.size()), layers_left_(layers) {
  Buffer<std::int64_t> seeds, numbers;
  for (std::size_t b = 0; b < batches.size(); ++b) {
    seeds.insert(seeds.end(), batches[b].seeds.begin(), batches[b].seeds.end());
    numbers.push_back(batches[b].number);
    frontier_.offsets.push_back(std::ssize(seeds));
    minibatches_[b].number = batches[b].number;
    minibatches_[b].blocks.resize(layers);
  }
  memory_->layers.resize(layers);
  frontier_.vertices = upload(cuda, seeds);
  device_numbers_ = upload(cuda, numbers);
  upload(cuda, std::span<const std::int64_t>(frontier_.offsets), frontier_.device_offsets);
}

DeviceArray<RowKey> DeviceWindow::keys(const Cuda& cuda) const {
  DeviceArray<RowKey> keys(static_cast<std::size_t>(frontier_.rows()));
  auto* to = keys.data();
  const auto *vertices = frontier_.vertices.data(), *of_batch = numbers();
  for_each_in_batches(cuda, "row_keys", {0, batches()}, frontier_.offsets, frontier_.device_offsets.data(),
                      [=] __device__(std::int64_t batch, std::int64_t k) {
                        to[k] = {vertices[k], of_batch[batch]};
                      });
  return keys;
}

void DeviceWindow::add_layer(DeviceLayer layer, std::span<const std::int64_t> entry_offsets,
                             DeviceFrontier next) {
  ESPALIER_CHECK(
      layers_left_ > 0 && std::ssize(entry_offsets) == batches() + 1 && next.batches() == batches(),
      "a layer of {} and {} batches in a window of {}", std::ssize(entry_offsets) - 1, next.batches(),
      batches());
  const auto at = --layers_left_;
  for (std::int64_t batch = 0; batch < batches(); ++batch) {
    const auto b = static_cast<std::size_t>(batch);
    minibatches_[b].blocks[at] = {frontier_.size(batch),
                                  next.size(batch),
                                  entry_offsets[b + 1] - entry_offsets[b],
                                  layer.indptr.data() + frontier_.begin(batch),
                                  layer.indices.data(),
                                  layer.values.data()};
  }
  memory_->layers[at] = std::move(layer);
  frontier_ = std::move(next);
}

std::vector<MinibatchOn<Cuda>> DeviceWindow::take_minibatches() {
  ESPALIER_CHECK(layers_left_ == 0, "{} layers of a window are missing", layers_left_);
  memory_->vertices = std::move(frontier_.vertices);
  for (std::int64_t batch = 0; batch < batches(); ++batch) {
    auto& minibatch = minibatches_[static_cast<std::size_t>(batch)];
    minibatch.vertices = {memory_->vertices.data() + frontier_.begin(batch),
                          static_cast<std::size_t>(frontier_.size(batch))};
    minibatch.memory = memory_;
  }
  return std::move(minibatches_);
}

Buffer<std::int64_t> offsets_at_batches(const Cuda& cuda, const std::int64_t* row_offsets,
                                        const DeviceFrontier& frontier) {
  DeviceArray<std::int64_t> found(frontier.offsets.size());
  auto* to = found.data();
  const auto* rows = frontier.device_offsets.data();
  for_each(cuda, "offsets_at_batches", std::ssize(frontier.offsets),
           [=] __device__(std::int64_t batch) { to[batch] = row_offsets[rows[batch]]; });
  return download(cuda, found);
}

}  // namespace espalier
