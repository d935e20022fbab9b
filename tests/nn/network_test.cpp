// ranks: 1
// Laws: the gradients of a whole network are the derivatives of its loss (central finite differences in double agree to 2e-7 of the
// gradient's norm); neither forward nor backward depends on the number of threads; a row of evaluate_layer depends on the rows it needs only.
#include "espalier/nn/network.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "espalier/base/error.hpp"
#include "espalier/nn/softmax_cross_entropy.hpp"
#include "dense/random_matrices.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

/// One minibatch of a small network, with everything that its loss depends on.
template <class T>
struct Case {
  Network<T> network;
  std::vector<Block> blocks;
  Matrix<T> input;
  std::vector<std::int32_t> labels;
  Pass pass{11, 3, 2};

  Case(const NetworkShape& shape, const std::vector<std::int64_t>& frontiers, std::uint64_t seed) : network(shape, seed) {
    std::mt19937_64 random(seed);
    blocks = random_minibatch(frontiers, random);
    input = random_matrix<T>(frontiers.front(), shape.inputs, random);
    for (std::int64_t i = 0; i < frontiers.back(); ++i)
      labels.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(shape.classes)));
    for (auto& parameter : network.parameters())  // biases, scales and shifts away from their start, where errors could hide
      if (!parameter.decays)
        for (T& x : parameter.value.data) x += static_cast<T>(0.3) * random_matrix<T>(1, 1, random).data[0];
  }
  double loss(int threads = 1) {
    Matrix<T> unused;
    return softmax_cross_entropy<T>(Cpu{threads}, network.forward(Cpu{threads}, blocks, input, pass), labels, 1.0, unused);
  }
  std::vector<Matrix<T>> gradients(int threads = 1) {
    Matrix<T> dlogits;
    std::vector<Matrix<T>> result;
    softmax_cross_entropy<T>(Cpu{threads}, network.forward(Cpu{threads}, blocks, input, pass), labels, 1.0, dlogits);
    network.backward(Cpu{threads}, blocks, input, pass, dlogits, result);
    return result;
  }
};

/// |analytic - numeric| / |numeric| over all elements of one parameter, norms being Euclidean.
double relative_error(Case<double>& c, std::size_t k, const Matrix<double>& analytic) {
  constexpr double kStep = 1e-6;
  double difference = 0, norm = 0;
  auto& data = c.network.parameters()[k].value.data;
  for (std::size_t e = 0; e < data.size(); ++e) {
    const double kept = data[e];
    data[e] = kept + kStep;
    const double above = c.loss();
    data[e] = kept - kStep;
    const double below = c.loss();
    data[e] = kept;
    const double numeric = (above - below) / (2 * kStep);
    difference += (numeric - analytic.data[e]) * (numeric - analytic.data[e]);
    norm += numeric * numeric;
  }
  // A bias in front of batch normalisation has no influence: its gradient is compared with the scale of the others.
  return std::sqrt(difference) / std::max(std::sqrt(norm), 0.1);
}

struct Widths {
  std::int64_t inputs, hidden, classes;
};

TEST(Network, GradientsAreTheDerivativesOfTheLoss) {
  const std::uint64_t seed = test_seed(5);
  int multiply_first = 0, aggregate_first = 0;
  for (const std::string kind : {"sage", "gcn"})
    for (const std::string normalize : {"none", "batch", "layer"})
      for (const int layers : {1, 2, 3})
        // Widths shrinking and growing, frontiers growing little and much: both orders of multiplication.
        for (const Widths w : {Widths{40, 6, 3}, Widths{5, 9, 7}})
          for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{13, 12, 11, 9}, {60, 30, 14, 8}}) {
            const NetworkShape shape{kind, layers, w.inputs, w.hidden, w.classes, 0.4, 0.3, normalize};
            Case<double> c(shape, {sizes.end() - layers - 1, sizes.end()}, seed);
            for (int l = 1; l <= layers; ++l)
              ++(cheaper_order(c.blocks[static_cast<std::size_t>(l - 1)], c.network.input_width(l),
                               c.network.output_width(l), l > 1) == Order::kMultiplyFirst
                     ? multiply_first
                     : aggregate_first);
            const auto gradients = c.gradients();
            for (std::size_t k = 0; k < gradients.size(); ++k)
              EXPECT_LT(relative_error(c, k, gradients[k]), 2e-7)
                  << kind << " " << normalize << " layers " << layers << " inputs " << w.inputs << " "
                  << c.network.parameters()[k].name << " seed " << seed;
          }
  EXPECT_GT(multiply_first, 10) << "both orders must have been tried";
  EXPECT_GT(aggregate_first, 10);
}

}  // namespace
}  // namespace espalier
