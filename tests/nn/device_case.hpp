// One minibatch of a small network, on the CPU in double and on a GPU, for tests: the same weights,
// blocks, input and labels.
#pragma once

#include "dense/device_matrices.hpp"
#include "dense/eigen_oracle.hpp"
#include "nn/network_case.hpp"

namespace espalier {

struct DeviceCase {
  const Cuda& gpu;
  Network<float, Cuda> network;
  NetworkCase<float> host;  ///< with the weights that the other two have
  Network<double> exact;
  const std::vector<BlockView<>>& blocks = host.blocks;
  std::vector<SharedDeviceBlock> device_storage;
  std::vector<DeviceArray<std::uint8_t>> device_relations;
  std::vector<DeviceArray<std::int32_t>> device_entries;  ///< those with features of edges
  std::vector<DeviceArray<float>> device_edges;
  std::vector<BlockView<Cuda>> device_blocks;
  Matrix<float, Cuda> device_input;
  DeviceArray<std::int32_t> device_labels;

  DeviceCase(const Cuda& gpu_, const NetworkShape& shape, const std::vector<std::int64_t>& frontiers,
             std::uint64_t seed)
      : gpu(gpu_), network(gpu, shape, seed), host(shape, frontiers, seed), exact(shape, seed) {
    copy_weights(gpu, host.network, network);
    for (std::size_t k = 0; k < exact.parameters().size(); ++k)
      exact.parameters()[k].value = in_double(host.network.parameters()[k].value);
    device_labels = upload(gpu, host.labels);
    device_input = to_device(gpu, host.input);
    for (const Block& block : host.storage) device_storage.emplace_back(gpu, block, 5);
    for (std::size_t l = 0; l < blocks.size(); ++l) show(l);
  }
  void show(std::size_t l) {
    auto& block = device_blocks.emplace_back(device_storage[l].block);
    block.runs = blocks[l].runs;
    if (!host.beside.relations.empty()) {
      device_relations.push_back(upload(gpu, behind(5, host.beside.relations[l])));
      block.relations = Beside<const std::uint8_t>(device_relations.back());
    }
    if (host.edges.entries.empty()) return;
    device_entries.push_back(upload(gpu, host.edges.entries[l]));
    device_edges.push_back(upload(gpu, host.edges.rows[l]));
    block.edges = host.edges.of(l);
    block.edges.entries = device_entries.back().data();
    block.edges.rows = device_edges.back().data();
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
    const auto& logits = network.forward(gpu, device_blocks, given, host.pass);
    softmax_cross_entropy(gpu, logits, device_labels.data(), 1.0, dlogits, loss.data());
    Result result{to_host(gpu, logits), download(gpu, loss)[0], {}, {}, {}};
    network.backward(gpu, device_blocks, given, host.pass, dlogits, gradients, &dinput);
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
    const auto exact_input = in_double(host.input);
    Matrix<double> dlogits;
    result.logits = exact.forward(Cpu{1}, blocks, exact_input, host.pass);
    result.loss = softmax_cross_entropy<double>(Cpu{1}, result.logits, host.labels, 1.0, dlogits);
    exact.backward(Cpu{1}, blocks, exact_input, host.pass, dlogits, result.gradients, &result.dinput);
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
