// A network over the dense matrix of a small graph, in double: the oracle of what is computed over
// the whole graph.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "dense/eigen_oracle.hpp"
#include "dense/random_matrices.hpp"
#include "espalier/nn/network.hpp"
#include "train/small_job.hpp"

namespace espalier {

// What a layer multiplies by: the mean over the in-neighbours (sage), or D^-1/2 (A + I)
// D^-1/2 (gcn).
inline Matrix<double> dense_matrix(const SmallProblem& problem, const std::string& kind) {
  const auto& graph = problem.graph;
  auto a = filled_matrix(graph.rows, graph.columns, 0.0);
  for (std::int64_t v = 0; v < graph.rows; ++v)
    for (auto k = graph.row_begin(v); k < graph.row_end(v); ++k)
      a(v, graph.indices[static_cast<std::size_t>(k)]) = kind == "gcn"
                                                             ? graph.values[static_cast<std::size_t>(k)]
                                                             : 1.0 / static_cast<double>(graph.row_size(v));
  if (kind == "sage") return a;
  std::vector<double> degree(static_cast<std::size_t>(a.rows), 0.0);
  for (std::int64_t v = 0; v < a.rows; ++v) {
    a(v, v) += 1;
    for (std::int64_t u = 0; u < a.rows; ++u) degree[static_cast<std::size_t>(v)] += a(v, u);
  }
  for (std::int64_t v = 0; v < a.rows; ++v)
    for (std::int64_t u = 0; u < a.rows; ++u)
      a(v, u) /= std::sqrt(degree[static_cast<std::size_t>(v)] * degree[static_cast<std::size_t>(u)]);
  return a;
}

// The tensor of that name; an empty matrix if the network has none.
inline Matrix<float> tensor(const Network<float>& network, int layer, const std::string& name) {
  for (const auto& parameter : network.parameters())
    if (parameter.name == fmt::format("layer{}.{}", layer, name)) return parameter.value;
  return {};
}

// H[1] .. H[L] of all vertices in double; the last are the logits.
inline std::vector<Matrix<double>> dense_layers(const SmallProblem& problem, const Network<float>& network) {
  const auto& shape = network.shape();
  const auto a = dense_matrix(problem, shape.kind);
  auto h = in_double(problem.features);
  std::vector<Matrix<double>> layers;
  for (int layer = 1; layer <= shape.layers; ++layer) {
    const bool sage = shape.kind == "sage";
    auto z = product_by_eigen(product_by_eigen(a, h), tensor(network, layer, sage ? "neighbour" : "weight"));
    const auto self = sage ? product_by_eigen(h, tensor(network, layer, "self")) : Matrix<double>();
    const auto bias = tensor(network, layer, "bias"), scale = tensor(network, layer, "scale"),
               shift = tensor(network, layer, "shift");
    for (std::int64_t v = 0; v < z.rows; ++v)
      for (std::int64_t j = 0; j < z.columns; ++j) {
        z(v, j) += bias(0, j) + (sage ? self(v, j) : 0.0);
        if (layer == shape.layers) continue;
        if (shape.normalize == "batch") {
          const auto* running = &network.running_statistics()[2 * static_cast<std::size_t>(layer - 1)];
          z(v, j) =
              scale(0, j) * (z(v, j) - running[0](0, j)) / std::sqrt(running[1](0, j) + 1e-5) + shift(0, j);
        }
        z(v, j) = std::max(z(v, j), 0.0);
      }
    layers.push_back(h = z);
  }
  return layers;
}

// Weights away from their start, running statistics too.
inline Network<float> network_of(const NetworkShape& shape, std::mt19937_64& random) {
  Network<float> network(shape, 9);
  std::uniform_real_distribution<float> uniform(0, 1);
  for (auto& parameter : network.parameters())
    for (float& x : parameter.value.data) x += 0.4f * (uniform(random) - 0.5f);
  for (auto& statistic : network.running_statistics())
    for (float& x : statistic.data) x += 0.3f * uniform(random);
  return network;
}

}  // namespace espalier
