// EXTRACT on a GPU: the blocks and lists of all batches of a call, a *window*, in common arrays.
//
// The blocks of one layer lie one under the other: their rows' offsets are one array, absolute in the layer's indices
// and values, and batch b's block begins at the row where its F[l] does. A sampler makes a window of seeds and
// then, layer by layer, counting down, looks at frontier() and gives the layer's arrays to add_layer().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "espalier/base/device_array.hpp"
#include "espalier/product/product.hpp"
#include "espalier/sample/device_local_ids.hpp"
#include "espalier/sample/minibatch.hpp"
#include "espalier/sample/sampler.hpp"

namespace espalier {

/// The blocks of one layer, of all batches.
struct DeviceLayer {
  DeviceArray<std::int64_t> indptr;   ///< [rows of F[l] of all batches + 1]
  DeviceArray<std::int32_t> indices;  ///< [entries] places in the F[l-1] of the row's batch
  DeviceArray<float> values;          ///< [entries]
};

class DeviceWindow {
 public:
  /// The seeds of `batches`, and room for `layers` blocks each.
  DeviceWindow(const Cuda& cuda, std::span<const SeedBatch> batches, std::size_t layers);

  std::int64_t batches() const { return frontier_.batches(); }
  /// F[l] of all batches, where l is the layer that comes next.
  const DeviceFrontier& frontier() const { return frontier_; }
  /// [batches] the batches' numbers in their epoch, device memory.
  const std::int64_t* numbers() const { return device_numbers_.data(); }
  /// (vertex, number of its batch) of every row of frontier().
  DeviceArray<RowKey> keys(const Cuda& cuda) const;

  /// The blocks of a layer and the lists that their columns are places in. entry_offsets[b] = layer.indptr where batch
  /// b's rows begin, [batches + 1], on the host.
  void add_layer(DeviceLayer layer, std::span<const std::int64_t> entry_offsets, DeviceFrontier next);

  /// What was made, once all layers are there. The window is then empty.
  std::vector<MinibatchOn<Cuda>> take_minibatches();

 private:
  // What the minibatches keep.
  struct Memory {
    DeviceArray<std::int64_t> vertices;
    std::vector<DeviceLayer> layers;
  };

  DeviceFrontier frontier_;
  DeviceArray<std::int64_t> device_numbers_;
  std::shared_ptr<Memory> memory_;
  std::vector<MinibatchOn<Cuda>> minibatches_;
  std::size_t layers_left_;
};

/// row_offsets[frontier.offsets[b]] for every b <= batches: where the entries of each batch begin, of rows whose offsets
/// are `row_offsets` (device memory, [frontier.rows() + 1]). Waits for the stream.
Buffer<std::int64_t> offsets_at_batches(const Cuda& cuda, const std::int64_t* row_offsets,
                                        const DeviceFrontier& frontier);

}  // namespace espalier
