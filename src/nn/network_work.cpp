#include "espalier/nn/network_work.hpp"

#include <algorithm>
#include <array>

namespace espalier {

namespace {

LayerWork operator+(const LayerWork& a, const LayerWork& b) {
  return {a.flops + b.flops, a.gathered + b.gathered, a.elements + b.elements};
}

/// Of entries each product with X takes a row of the weights; the layers that read them
/// (LayerKind::takes_entries) multiply no other matrix in layer 1.
LayerCosts costs_of(const LayerKind& kind, const LayerShape& layer, const BlockSize& block) {
  auto costs = kind.costs(layer, block);
  if (layer.pairs == 0) return costs;
  const double filled = static_cast<double>(layer.pairs) / static_cast<double>(layer.in);
  for (auto* work : {&costs.forward, &costs.backward, &costs.evaluation}) {
    work->gathered += work->flops / 2 * filled;
    work->flops = 0;
  }
  return costs;
}

}  // namespace

LayerWork network_work(const NetworkShape& network, LayerWork LayerCosts::*pass,
                       const std::function<BlockSize(std::size_t)>& block_of) {
  const auto& kind = layer_kind_of(network.kind);
  const double passes = pass == &LayerCosts::backward ? 2 : 1;
  LayerWork work;
  for (const auto& made : network_layers(network)) {
    const auto number = static_cast<std::size_t>(made.layer.number);
    const bool of_graph = made.layer.number <= network.layers;
    const BlockSize block = block_of(of_graph ? number : number - 1);
    if (of_graph) work = work + costs_of(kind, made.layer, block).*pass;
    if (!of_graph || made.projects_input)
      work.flops +=
          passes * 2 * block.rows * static_cast<double>(made.layer.in) * static_cast<double>(made.layer.out);
  }
  return work;
}

std::vector<std::size_t> transposed_layers(const NetworkShape& network) {
  std::vector<std::size_t> layers;
  for (const auto& made : network_layers(network)) {
    if (made.layer.number > network.layers) continue;
    const auto costs = layer_kind_of(network.kind).costs(made.layer, {});
    if (costs.transposes && !costs.keeps_positions)
      layers.push_back(static_cast<std::size_t>(made.layer.number - 1));
  }
  return layers;
}

Footprint transposes_footprint(const NetworkShape& network, std::span<const double> rows,
                               std::span<const double> entries, double count) {
  Footprint sum;
  for (const auto layer : transposed_layers(network))
    sum.add(8 * rows[layer], count).add(4 * entries[layer + 1], 2 * count);
  return sum;
}

Footprint input_footprint(const NetworkShape& network, double vertices, bool transposed) {
  Footprint sum;
  for (std::size_t k = 0; k < network.pairs.size(); ++k) {
    if (network.pairs[k] == 0) continue;
    const double entries = vertices * static_cast<double>(network.pairs[k]);
    if (!reads_entries(network)) {
      sum.add(4 * vertices * static_cast<double>(table_width(network, k)));
      continue;
    }
    sum.add(8 * vertices).add(4 * entries, 2);
    if (transposed) sum.add(8 * static_cast<double>(network.inputs)).add(4 * entries, 2);
  }
  return sum;
}

Footprint activations_footprint(const NetworkShape& network, std::span<const double> rows,
                                std::span<const double> entries, double input_width) {
  const auto& kind = layer_kind_of(network.kind);
  const auto layers = rows.size() - 1;
  Footprint sum;
  double transposed_rows = 0, transposed_entries = 0, position_bytes = 0;
  std::array<double, 2> gradients = {0, 0};
  std::array<double, kMostLayerArrays> scratch = {};
  for (const auto& made : network_layers(network)) {
    const auto layer = static_cast<std::size_t>(made.layer.number);
    const double in = static_cast<double>(made.layer.in), out = static_cast<double>(made.layer.out);
    if (layer > layers) {  // of jumping knowledge: J and its gradient, logits
      sum.add(4 * rows[layer - 1] * in, network.jumping == "max" ? 3 : 2).add(4 * rows[layer - 1] * out);
      continue;
    }
    const auto costs = kind.costs(made.layer, {rows[layer], rows[layer - 1], entries[layer]});
    for (const double numbers : costs.kept) sum.add(4 * numbers);
    sum.add(4 * rows[layer] * out, made.normalizes ? 2 : 1);
    for (std::size_t k = 0; k < costs.backward_scratch.size(); ++k)
      scratch[k] = std::max(scratch[k], costs.backward_scratch[k]);
    if (costs.transposes) {
      transposed_rows = std::max(transposed_rows, rows[layer - 1]);
      transposed_entries = std::max(transposed_entries, entries[layer]);
    }
    if (costs.keeps_positions) position_bytes = std::max(position_bytes, 4 * entries[layer]);
    auto& gradient = gradients[(layers - layer) % 2];
    if (layer > 1) gradient = std::max(gradient, rows[layer - 1] * in);
  }
  for (const double gradient : gradients) sum.add(4 * gradient);
  for (const double numbers : scratch) sum.add(4 * numbers);
  const double first = network.types.empty() ? input_width : static_cast<double>(network.hidden);
  sum += input_footprint(network, rows[0], true);
  // By their linear maps, and back.
  if (!network.types.empty()) sum.add(4 * rows[0] * first, 2);
  if (network.input_dropout > 0) sum.add(4 * rows[0] * first);
  return sum.add(8 * transposed_rows).add(4 * transposed_entries, 2).add(position_bytes);
}

}  // namespace espalier
