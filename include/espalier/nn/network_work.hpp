// What a network's passes do and hold, of minibatches that need not exist: sums over its layers'
// LayerCosts (layer.hpp).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "espalier/base/footprint.hpp"
#include "espalier/nn/network_shape.hpp"

namespace espalier {

/// Of all layers, and of the linear one that jumping knowledge ends with. `pass`: of LayerCosts;
/// `block_of`: the block of each layer, from 1.
LayerWork network_work(const NetworkShape& network, LayerWork LayerCosts::*pass,
                       const std::function<BlockSize(std::size_t)>& block_of);

/// Of a forward and a backward pass (network.inl.hpp): what each layer keeps and its result,
/// gradients of two layers, memory that their backward passes work in, a transposed block. `rows`,
/// `entries`: |F[l]|, l = 0 .. L, and of B[l], of the largest minibatch; `input_width`: numbers of
/// the rows of an input vertex.
Footprint activations_footprint(const NetworkShape& network, std::span<const double> rows,
                                std::span<const double> entries, double input_width);

/// The layers, from 0, that multiply by their block's transpose whatever its size, and ask nothing
/// of its entries' positions: on a GPU a window of minibatches has it made beforehand.
std::vector<std::size_t> transposed_layers(const NetworkShape& network);

/// What these hold of so many minibatches.
Footprint transposes_footprint(const NetworkShape& network, std::span<const double> rows,
                               std::span<const double> entries, double count);

/// What it makes of rows of pairs for so many vertices (InputShape::pairs), and in a backward pass
/// of their transpose; nothing where there are none.
Footprint input_footprint(const NetworkShape& network, double vertices, bool transposed);

}  // namespace espalier
