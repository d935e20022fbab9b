// One minibatch of a small network, on the CPU in double and on a GPU, for tests: the same weights,
// blocks, input and labels.
#pragma once

#include "dense/device_matrices.hpp"
#include "dense/eigen_oracle.hpp"
#include "dense/relation_blocks.hpp"
#include "edges_beside.hpp"
#include "espalier/base/error.hpp"
#include "espalier/nn/network.hpp"
#include "espalier/nn/softmax_cross_entropy.hpp"

namespace espalier {

/// Euclidean norm of a - b, by that of b or, if b is smaller, by `least`.
inline double relative_difference(const Matrix<float>& a, const Matrix<double>& b, double least) {
  EXPECT_TRUE(a.rows == b.rows && a.columns == b.columns);
  double difference = 0, norm = 0;
  for (std::size_t e = 0; e < b.data.size(); ++e) {
    difference += std::pow(static_cast<double>(a.data[e]) - b.data[e], 2);
    norm += b.data[e] * b.data[e];
  }
  return std::sqrt(difference) / std::max(std::sqrt(norm), least);
}

struct DeviceCase {
  const Cuda& gpu;
  Network<float, Cuda> network;
  Network<float> weights;  ///< what the other two have
  Network<double> exact;
  std::vector<Block> storage;
  RelationsAndTypes beside;
  EdgesBeside edges;
  std::vector<BlockView<>> blocks;
  std::vector<SharedDeviceBlock> device_storage;
  std::vector<DeviceArray<std::uint8_t>> device_relations;
  std::vector<DeviceArray<std::int32_t>> device_entries;  ///< those with features of edges
  std::vector<DeviceArray<float>> device_edges;
  std::vector<BlockView<Cuda>> device_blocks;
  Matrix<float> input;
  Matrix<float, Cuda> device_input;
  Buffer<std::int32_t> labels;
  DeviceArray<std::int32_t> device_labels;
  Pass pass{11, 3, 2};

  /// Biases, scales and shifts are moved away from their start, where errors could hide.
  DeviceCase(const Cuda& gpu_, const NetworkShape& shape, const std::vector<std::int64_t>& frontiers,
             std::uint64_t seed)
      : gpu(gpu_), network(gpu, shape, seed), weights(shape, seed), exact(shape, seed) {
    std::mt19937_64 random(seed);
    for (std::size_t k = 0; k < weights.parameters().size(); ++k) {
      auto& parameter = weights.parameters()[k];
      if (!parameter.decays)
        for (float& x : parameter.value.data) x += 0.3f * random_matrix<float>(1, 1, random).data[0];
      exact.parameters()[k].value = in_double(parameter.value);
    }
    copy_weights(gpu, weights, network);
    storage = random_minibatch(frontiers, random);
    blocks.assign(storage.begin(), storage.end());
    for (const Block& block : storage) device_storage.emplace_back(gpu, block, 5);
    for (const auto& stored : device_storage) device_blocks.push_back(stored.block);
    for (std::int64_t i = 0; i < frontiers.back(); ++i)
      labels.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(shape.classes)));
    device_labels = upload(gpu, labels);
    beside = {storage, frontiers, shape.relations, static_cast<int>(shape.types.size()), random};
    show_beside();
    edges = {storage, shape.edge_features, random};
    show_edges();
    input = random_matrix<float>(exact.input_rows(blocks[0].runs, frontiers.front()), shape.inputs, random);
    device_input = to_device(gpu, input);
  }
  void show_beside() {
    beside.show(blocks);
    for (std::size_t l = 0; l < blocks.size(); ++l) device_blocks[l].runs = blocks[l].runs;
    for (std::size_t l = 0; l < beside.relations.size(); ++l) {
      device_relations.push_back(upload(gpu, behind(5, beside.relations[l])));
      device_blocks[l].relations = device_relations.back().data();
    }
  }
  void show_edges() {
    edges.show(blocks);
    for (std::size_t l = 0; l < edges.entries.size(); ++l) {
      device_entries.push_back(upload(gpu, edges.entries[l]));
      device_edges.push_back(upload(gpu, edges.rows[l]));
      device_blocks[l].edges = edges.of(l);
      device_blocks[l].edges.entries = device_entries.back().data();
      device_blocks[l].edges.rows = device_edges.back().data();
    }
  }

  struct Result {
    Matrix<float> logits;
    double loss = 0;
    std::vector<Matrix<float>> gradients, statistics;
    Matrix<float> dinput;
  };
  /// Forward, loss and backward on the GPU, from `given`.
  Result on_gpu(const Matrix<float, Cuda>& given) {
    Matrix<float, Cuda> dlogits, dinput;
    DeviceArray<double> loss(1);
    std::vector<Matrix<float, Cuda>> gradients;
    const auto& logits = network.forward(gpu, device_blocks, given, pass);
    softmax_cross_entropy(gpu, logits, device_labels.data(), 1.0, dlogits, loss.data());
    Result result{to_host(gpu, logits), download(gpu, loss)[0], {}, {}, {}};
    network.backward(gpu, device_blocks, given, pass, dlogits, gradients, &dinput);
    result.dinput = to_host(gpu, dinput);
    for (const auto& gradient : gradients) result.gradients.push_back(to_host(gpu, gradient));
    for (const auto& statistic : network.batch_statistics())
      result.statistics.push_back(to_host(gpu, statistic));
    return result;
  }
  Result on_gpu() { return on_gpu(device_input); }

  struct ExactResult {
    Matrix<double> logits;
    double loss = 0;
    std::vector<Matrix<double>> gradients;
    Matrix<double> dinput;
  };
  ExactResult on_cpu() {
    ExactResult result;
    const auto exact_input = in_double(input);
    Matrix<double> dlogits;
    result.logits = exact.forward(Cpu{1}, blocks, exact_input, pass);
    result.loss = softmax_cross_entropy<double>(Cpu{1}, result.logits, labels, 1.0, dlogits);
    exact.backward(Cpu{1}, blocks, exact_input, pass, dlogits, result.gradients, &result.dinput);
    return result;
  }
};

inline void expect_same_bits(const DeviceCase::Result& a, const DeviceCase::Result& b) {
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_TRUE(same_bits(a.logits, b.logits));
  ASSERT_EQ(a.gradients.size(), b.gradients.size());
  for (std::size_t k = 0; k < a.gradients.size(); ++k)
    EXPECT_TRUE(same_bits(a.gradients[k], b.gradients[k])) << "gradient " << k;
  if (a.dinput.rows == b.dinput.rows) EXPECT_TRUE(same_bits(a.dinput, b.dinput));
}

}  // namespace espalier
