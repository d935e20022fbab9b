// EXTRACT: the blocks and lists of all batches of a call, a *window*, in common arrays.
//
// The blocks of one layer lie one under the other: their rows' offsets are one array, absolute in
// the layer's ids and values, and batch b's block begins at the row where its F[l] does. A sampler
// makes a window of seeds and then, layer by layer, counting down, looks at frontier() and calls
// add_layer().
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "espalier/base/arrays.hpp"
#include "espalier/base/error.hpp"
#include "espalier/product/product.hpp"
#include "espalier/sample/block_value.hpp"
#include "espalier/sample/local_ids.hpp"
#include "espalier/sample/minibatch.hpp"
#include "espalier/sample/sampler.hpp"

namespace espalier {

/// The blocks of one layer, of all batches: ids are places in the F[l-1] of the row's batch.
template <class Space>
struct LayerOn : Entries<std::int32_t, Space> {
  LayerOn() = default;
  LayerOn(Entries<std::int32_t, Space> entries) : Entries<std::int32_t, Space>(std::move(entries)) {}

  Array<Space, std::uint8_t> relations;  ///< beside ids, of a typed graph
  bool typed = false;

  /// A block with the rows offsets[first] .. offsets[first + rows], which has values.
  BlockView<Space> block(std::int64_t first, std::int64_t rows, std::int64_t columns,
                         std::int64_t entries) const& {
    return {rows,
            columns,
            entries,
            this->offsets.data() + first,
            this->ids.data(),
            Beside<const float>(this->values),
            {typed, relations}};
  }
};

template <class Space>
class WindowOn {
 public:
  /// The seeds of `batches`, and room for `layers` blocks each.
  WindowOn(const Space& space, std::span<const SeedBatch> batches, std::size_t layers)
      : memory_(std::make_shared<Memory>()), minibatches_(batches.size()), layers_left_(layers) {
    std::vector<std::span<const std::int64_t>> seeds;
    std::vector<std::int64_t> numbers;
    for (std::size_t b = 0; b < batches.size(); ++b) {
      seeds.push_back(batches[b].seeds());
      numbers.push_back(batches[b].number);
      minibatches_[b].number = batches[b].number;
      minibatches_[b].blocks.resize(layers);
    }
    memory_->layers.resize(layers);
    frontier_ = stack_frontier(space, seeds, std::move(numbers));
  }

  /// F[l] of all batches, where l is the layer that comes next.
  const FrontierOn<Space>& frontier() const { return frontier_; }

  /// The blocks of a layer and the lists of their columns. Batch b has entries[b] .. entries[b+1].
  void add_layer(LayerOn<Space> layer, std::span<const std::int64_t> entries, FrontierOn<Space> next) {
    ESPALIER_CHECK(layers_left_ > 0, "a layer too many in a window of {}", memory_->layers.size());
    const auto at = --layers_left_;
    for (std::int64_t b = 0; b < frontier_.batches(); ++b)
      minibatches_[b].blocks[at] =
          layer.block(frontier_.begin(b), frontier_.size(b), next.size(b), entries[b + 1] - entries[b]);
    memory_->layers[at] = std::move(layer);
    frontier_ = std::move(next);
  }

  /// The blocks of the next layer are those of the last one, which have added no vertex.
  void repeat_layer() {
    ESPALIER_CHECK(layers_left_ > 0 && layers_left_ < memory_->layers.size(), "no layer to repeat");
    const auto at = --layers_left_;
    for (auto& minibatch : minibatches_) minibatch.blocks[at] = minibatch.blocks[at + 1];
  }

  /// What was made, once all layers are there. The window is then empty.
  std::vector<MinibatchOn<Space>> take_minibatches() {
    ESPALIER_CHECK(layers_left_ == 0, "{} layers of a window are missing", layers_left_);
    memory_->vertices = std::move(frontier_.vertices);
    for (std::int64_t b = 0; b < frontier_.batches(); ++b) {
      minibatches_[b].vertices = {memory_->vertices.data() + frontier_.begin(b),
                                  static_cast<std::size_t>(frontier_.size(b))};
      minibatches_[b].memory = memory_;
    }
    return std::move(minibatches_);
  }

 private:
  // What the minibatches keep.
  struct Memory {
    Array<Space, std::int64_t> vertices;
    std::vector<LayerOn<Space>> layers;
  };

  FrontierOn<Space> frontier_;
  std::shared_ptr<Memory> memory_;
  std::vector<MinibatchOn<Space>> minibatches_;
  std::size_t layers_left_;
};

/// Every pick of a row weighs 1 / |picked|; offsets [rows + 1].
inline Buffer<float> mean_values(const Cpu& cpu, const Buffer<std::int64_t>& offsets, std::int64_t entries) {
  Buffer<float> values(entries);
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t r = 0; r < std::ssize(offsets) - 1; ++r)
    if (const auto picked = offsets[r + 1] - offsets[r]; picked > 0)
      std::fill_n(values.begin() + offsets[r], picked, mean_value(picked));
  return values;
}
DeviceArray<float> mean_values(const Cuda& cuda, const DeviceArray<std::int64_t>& offsets,
                               std::int64_t entries);

}  // namespace espalier
