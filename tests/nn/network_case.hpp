// A small network with a minibatch, for tests of whole networks.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "dense/relation_blocks.hpp"
#include "edges_beside.hpp"
#include "espalier/nn/cross_entropy.hpp"
#include "espalier/nn/network.hpp"

namespace espalier {

/// One minibatch of a small network, with everything that its loss depends on.
template <class T>
struct NetworkCase {
  Network<T> network;
  std::vector<Block> storage;
  RelationsAndTypes beside;
  EdgesBeside edges;
  std::vector<BlockView<>> blocks;
  Matrix<T> input;
  Buffer<std::int32_t> labels;
  Pass pass{11, 3, 2};

  NetworkCase(const NetworkShape& shape, const std::vector<std::int64_t>& frontiers, std::uint64_t seed)
      : network(shape, seed) {
    std::mt19937_64 random(seed);
    storage = random_minibatch(frontiers, random);
    blocks.assign(storage.begin(), storage.end());
    for (std::int64_t i = 0; i < frontiers.back(); ++i)
      labels.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(shape.classes)));
    // Biases, scales and shifts away from their start, where errors could hide.
    for (auto& parameter : network.parameters())
      if (!parameter.decays)
        for (T& x : parameter.value.data) x += static_cast<T>(0.3) * random_matrix<T>(1, 1, random).data[0];
    beside = {storage, frontiers, shape.relations, static_cast<int>(shape.types.size()), random};
    beside.show(blocks);
    edges = {storage, shape.edge_features, random};
    edges.show(blocks);
    input = random_matrix<T>(network.input_rows(blocks[0].runs, frontiers.front()), shape.inputs, random);
  }
  NetworkCase(const NetworkCase&) = delete;  // blocks are views
  double loss(int threads = 1) {
    Matrix<T> unused;
    return softmax_cross_entropy<T>(Cpu{threads}, network.forward(Cpu{threads}, blocks, input, pass), labels,
                                    1.0, unused);
  }
  std::vector<Matrix<T>> gradients(int threads = 1, Matrix<T>* dinput = nullptr) {
    Matrix<T> dlogits;
    std::vector<Matrix<T>> result;
    softmax_cross_entropy<T>(Cpu{threads}, network.forward(Cpu{threads}, blocks, input, pass), labels, 1.0,
                             dlogits);
    network.backward(Cpu{threads}, blocks, input, pass, dlogits, result, dinput);
    return result;
  }
};

/// The update of a step of the network's last minibatch alone.
template <class T, class Space>
void update_running_statistics(const Space& space, Network<T, Space>& network) {
  std::vector<Matrix<T, Space>> weighted;
  network.weigh_statistics(space, weighted);
  network.update_running_statistics(space, weighted);
}

/// How far derivatives are from numeric ones. A bias in front of batch normalisation has no
/// influence: its gradient is compared with the scale of the others.
template <class Loss>
double relative_error(const Loss& loss, Matrix<double>& value, const Matrix<double>& analytic) {
  return relative_difference(analytic, numeric_gradient(value, loss), 0.1);
}

/// Evaluation of a whole minibatch, layer by layer.
inline Matrix<double> evaluate(const Network<double>& network, const std::vector<BlockView<>>& blocks,
                               const Matrix<double>& input) {
  Matrix<double> at = input, next, jumped;
  const auto seeds = blocks.back().rows;
  if (network.jumps()) jumped.resize(seeds, network.input_width(network.stages()));
  LayerScratch<double> scratch;
  Buffer<std::int32_t> winners;
  for (int layer = 1; layer <= network.shape().layers; ++layer, std::swap(at, next)) {
    network.evaluate_layer(Cpu{1}, layer, blocks[static_cast<std::size_t>(layer - 1)], at, scratch, next);
    if (network.jumps())
      network.take_up_layer(Cpu{1}, layer, MatrixView<double>(next).first_rows(seeds), winners, jumped);
  }
  if (network.jumps()) network.evaluate_output(Cpu{1}, jumped, at);
  return at;
}

/// The places of a list whose vertices have rows of X, in order: all, but for types without
/// features in layer 1.
inline std::vector<std::int64_t> places_with_rows(const NetworkShape& shape, int layer,
                                                  const BlockView<>& block) {
  std::vector<std::int64_t> places;
  if (shape.types.empty() || layer > 1) {
    for (std::int64_t k = 0; k < block.columns; ++k) places.push_back(k);
    return places;
  }
  for (const auto& run : block.runs)
    for (auto k = run.begin; k < run.end && shape.types[static_cast<std::size_t>(run.type)].table >= 0; ++k)
      places.push_back(k);
  return places;
}

/// A block of one row, and what stands beside its entries and vertices.
struct LoneRow {
  Block block;
  std::vector<TypeRun> runs;
  Beside<const std::uint8_t> relations = {};
  std::vector<std::int32_t> edges;  ///< entries with features, which stand beside
  EdgeRows of_edges;

  BlockView<> view() const {
    auto view = with_relations<Cpu>(block, relations);
    view.runs = runs;
    view.edges = of_edges;
    view.edges.entries = edges.data();
    return view;
  }
};

inline int type_at(std::span<const TypeRun> runs, std::int64_t place) {
  return std::ranges::find_if(runs, [=](const TypeRun& run) { return place < run.end; })->type;
}

/// The one-row block that has row i of `block` only: the row itself first (a destination is its
/// first source), then what it needs. `needed` lists those rows of the input.
inline LoneRow row_alone(const BlockView<>& block, std::int64_t i, std::vector<std::int64_t>& needed) {
  LoneRow alone;
  Block& row = alone.block;
  needed = {i};
  for (std::int64_t e = block.row_begin(i); e < block.row_end(i); ++e) {
    const bool itself = block.indices[e] == i;
    row.indices.push_back(itself ? 0 : static_cast<std::int32_t>(needed.size()));
    if (!itself) needed.push_back(block.indices[e]);
    row.values.push_back(block.values[e]);
  }
  row.rows = 1;
  row.columns = static_cast<std::int64_t>(needed.size());
  row.indptr.push_back(row.entries());
  alone.relations = block.relations + block.row_begin(i);
  alone.of_edges = {0, block.edges.width, nullptr, block.edges.rows};
  for (std::int64_t k = 0; k < block.edges.count; ++k) {
    const auto at = block.indptr[0] + block.edges.entries[k];
    if (at < block.row_begin(i)) alone.of_edges.rows += block.edges.width;
    if (at < block.row_begin(i) || at >= block.row_end(i)) continue;
    alone.edges.push_back(static_cast<std::int32_t>(at - block.row_begin(i)));
    ++alone.of_edges.count;
  }
  for (std::int64_t k = 0; k < row.columns && !block.runs.empty(); ++k)
    alone.runs.push_back({k, k + 1, type_at(block.runs, needed[static_cast<std::size_t>(k)])});
  return alone;
}

}  // namespace espalier
