// Layer-wise sampling on a GPU, for all batches of a call at once: the twin of layer_wise.hpp for a matrix whose rows are
// all there. Same draws, same integers, same bits.
#pragma once

#include <memory>
#include <vector>

#include "device_window.hpp"
#include "espalier/sparse/row_pieces.hpp"
#include "layer_wise.hpp"

namespace espalier {

/// The columns of one layer, of all batches one under the other.
template <class Index>
struct DeviceLayerPicks {
  std::vector<std::int64_t> offsets = {0};   ///< [batches + 1], for the host
  DeviceArray<std::int64_t> device_offsets;  ///< the same, for kernels
  DeviceArray<Index> columns;   ///< of batch b: offsets[b] .. offsets[b + 1], ascending global ids
  DeviceArray<double> factors;  ///< beside columns
};

/// What the picks of a layer are made from.
struct LayerInput {
  const DeviceFrontier& frontier;  ///< F[layer]; a batch's seeds are the first of its list
  const RowPieces& pieces;         ///< of the frontier's rows; a group is a batch
  const std::int64_t* numbers;     ///< [batches] in their epoch, device memory
  const std::int64_t* seeds;       ///< [batches] how many, device memory
  RandomStream stream;             ///< keyed by seed, epoch and layer; the batch is to be set
  std::int64_t fanout;
};

/// Where the picks of a layer come from.
template <class Index>
class DeviceLayerDistribution {
 public:
  virtual ~DeviceLayerDistribution() = default;

  /// Before the layers of a bulk: `streams[b]` is keyed by seed, epoch and batch.
  virtual void begin(const Cuda& cuda, std::span<const RandomStream> streams,
                     std::span<const std::int64_t> fanout) = 0;
  virtual DeviceLayerPicks<Index> pick(const Cuda& cuda, const LayerInput& input) = 0;
  virtual bool normalizes_rows() const = 0;
  virtual bool uses_sums() const = 0;
};

/// The sampler of a distribution over `m`, which has one block row and must outlive it. Collective over the grid.
template <class Index>
std::unique_ptr<DeviceSampler> make_layer_wise(const DeviceDistCsr<Index>& m, const SamplerShape& shape,
                                               std::unique_ptr<DeviceLayerDistribution<Index>> distribution);

}  // namespace espalier
