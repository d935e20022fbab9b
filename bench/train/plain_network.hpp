// The loss of a GraphSAGE network by plain loops in double: the oracle of step_bench.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <thread>
#include <vector>

#include "espalier/nn/dropout.hpp"
#include "espalier/nn/network.hpp"

namespace espalier::bench {

/// Parameter k of a network, moved by `along` times gradient k when there are gradients.
inline std::vector<double> moved(const Network<float>& network, std::size_t k,
                                 const std::vector<Matrix<float>>& gradients, double along) {
  const auto& value = network.parameters()[k].value.data;
  std::vector<double> result(value.begin(), value.end());
  for (std::size_t e = 0; along != 0 && e < result.size(); ++e)
    result[e] += along * static_cast<double>(gradients[k].data[e]);
  return result;
}

/// z += x W, one row. W [in, out].
inline void add_product(const double* x, const std::vector<double>& w, std::span<double> z) {
  for (std::size_t k = 0; k < w.size() / z.size(); ++k)
    for (std::size_t o = 0; o < z.size(); ++o) z[o] += x[k] * w[k * z.size() + o];
}

/// The mean over the rows of `blocks.back()` of softmax cross-entropy, for kind = sage without
/// normalisation.
inline double plain_loss(const Network<float>& network, std::span<const BlockView<>> blocks,
                         const Matrix<float>& input, std::span<const std::int32_t> labels, const Pass& pass,
                         const std::vector<Matrix<float>>& gradients, double along) {
  const auto& shape = network.shape();
  std::vector<double> x(input.data.begin(), input.data.end());
  for (int layer = 1; layer <= shape.layers; ++layer) {
    const auto& block = blocks[static_cast<std::size_t>(layer - 1)];
    const auto in = static_cast<std::size_t>(network.input_width(layer)),
               out = static_cast<std::size_t>(network.output_width(layer));
    const auto first = 3 * static_cast<std::size_t>(layer - 1);  // self, neighbour, bias
    const auto self = moved(network, first, gradients, along),
               neighbour = moved(network, first + 1, gradients, along),
               bias = moved(network, first + 2, gradients, along);
    const KeyedStream mask =
        RandomStream{pass.seed, Purpose::kDropout, pass.epoch, pass.batch, static_cast<std::uint64_t>(layer)};
    std::vector<double> z(static_cast<std::size_t>(block.rows) * out);
#pragma omp parallel for num_threads(std::thread::hardware_concurrency()) schedule(dynamic, 64)
    for (std::int64_t i = 0; i < block.rows; ++i) {
      std::vector<double> mean(in, 0.0);
      for (auto e = block.row_begin(i); e < block.row_end(i); ++e)
        for (std::size_t k = 0; k < in; ++k)
          mean[k] +=
              x[static_cast<std::size_t>(block.indices[e]) * in + k] / static_cast<double>(block.row_size(i));
      const std::span<double> row(z.data() + static_cast<std::size_t>(i) * out, out);
      std::copy(bias.begin(), bias.end(), row.begin());
      add_product(x.data() + static_cast<std::size_t>(i) * in, self, row);
      add_product(mean.data(), neighbour, row);
      if (layer == shape.layers) continue;
      const auto stream = mask.of_row(i);
      for (std::size_t j = 0; j < out; ++j) {
        const bool kept =
            dropout_keeps(random_block(stream, j / kMasksPerBlock), static_cast<int>(j % kMasksPerBlock),
                          dropout_threshold(shape.dropout));
        row[j] = kept && row[j] > 0 ? row[j] / (1 - shape.dropout) : 0;
      }
    }
    x = std::move(z);
  }
  double loss = 0;
  const auto classes = static_cast<std::size_t>(shape.classes);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::span<const double> logits(x.data() + i * classes, classes);
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit);
    loss += std::log(sum) - logits[static_cast<std::size_t>(labels[i])];
  }
  return loss / static_cast<double>(labels.size());
}

}  // namespace espalier::bench
