// A graph neural network of L layers, its forward and its backward pass.
//
//     H[0] = dropout(X)                           X [F[0], inputs]: features of the input frontier
//     Z[l] = CONV(B[l], H[l-1])                   SAGE-mean or GCN, for l = 1 .. L
//     H[l] = dropout(relu(normalise(Z[l])))       for l < L
//     logits = Z[L]                               [seeds, classes]
//
// A Network belongs to one rank and one minibatch at a time; it knows no sampler and no MPI. Its
// weights and activations are memory of its space, and all it is given must be too. The trainer
// averages gradients and the statistics of batch normalisation over a step's minibatches and hands
// both back.
//
// Laws: forward and backward are functions of (parameters, blocks, input, Pass) only, bit for
// bit, for any number of threads. A row of evaluate_layer depends on the rows it needs only, so
// evaluation does not depend on how rows are spread over ranks; on a GPU that holds but for the
// rounding of products (dense/gemm.hpp). There all work is put on the stream, and the host
// waits for none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/nn/convolution.hpp"
#include "espalier/nn/parameter.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

struct NetworkShape {
  std::string kind = "sage";  ///< "sage" | "gcn"
  int layers = 2;
  std::int64_t inputs = 0, hidden = 0, classes = 0;  ///< widths
  double dropout = 0, input_dropout = 0;             ///< probability that an element is
                                                     ///< dropped, in [0, 1)
  std::string normalize = "none";                    ///< "none" | "batch" | "layer"
};

/// What the dropout masks of one minibatch are keyed by.
struct Pass {
  std::uint64_t seed = 0, epoch = 0, batch = 0;
};

/// What a network is given of X.
enum class InputForm {
  kRows,        ///< all rows of F[0]
  kAggregated,  ///< the rows of F[1], its first ones; B[1] X is in input_aggregate() already
};

template <class T, class Space = Cpu>
class Network {
 public:
  /// Glorot uniform weights (Glorot and Bengio 2010) from the counter RNG, keyed by (seed,
  /// parameter number, element); biases and shifts 0, scales 1: the same in every space. Throws
  /// UserError (usage) for a shape that makes no sense.
  Network(const Space&, const NetworkShape& shape, std::uint64_t seed);
  Network(const NetworkShape& shape, std::uint64_t seed) requires std::is_same_v<Space, Cpu>
      : Network(Cpu{}, shape, seed) {}

  const NetworkShape& shape() const { return shape_; }
  std::vector<Parameter<T, Space>>& parameters() { return parameters_; }
  const std::vector<Parameter<T, Space>>& parameters() const { return parameters_; }
  /// The number of trained numbers.
  std::int64_t parameter_count() const;
  /// Widths of what layer 1 .. L reads and writes.
  std::int64_t input_width(int layer) const;
  std::int64_t output_width(int layer) const;

  /// Does layer 1 begin with B[1] X, the block times the input as it is? Then a caller may form
  /// that product itself, while it gathers rows, and hand over InputForm::kAggregated. A function
  /// of the shapes only.
  bool aggregates_input(const BlockView<Space>& first_block) const;
  /// Room for B[1] X [blocks[0].rows, inputs].
  Matrix<T, Space>& input_aggregate() { return activations_of(1).product; }

  /// The training forward pass. blocks[0] belongs to layer 1 (input side), blocks[L-1] to the
  /// seeds; blocks[l].columns == blocks[l-1].rows; input [blocks[0].columns, inputs]. Returns
  /// logits [blocks[L-1].rows, classes], valid until the next forward.
  const Matrix<T, Space>& forward(const Space&, std::span<const BlockView<Space>> blocks,
                                  const Matrix<T, Space>& input, const Pass& pass,
                                  InputForm form = InputForm::kRows);

  /// Gradients of the loss whose derivative by the logits is `dlogits`, one per parameter in the
  /// order of parameters(), overwritten. Everything else must be as in the forward pass just
  /// before: it reads the activations that pass has kept.
  void backward(const Space&, std::span<const BlockView<Space>> blocks, const Matrix<T, Space>& input,
                const Pass& pass, const Matrix<T, Space>& dlogits, std::vector<Matrix<T, Space>>& gradients);

  /// Layer 1 .. L without dropout, with running statistics: normalisation and ReLU included except
  /// after the last layer. input [block.columns, input_width(layer)]; output becomes [block.rows,
  /// output_width(layer)]; no two may be the same matrix. `scratch` is memory to work in, which the
  /// next layer may use again.
  void evaluate_layer(const Space&, int layer, const BlockView<Space>& block, const Matrix<T, Space>& input,
                      Matrix<T, Space>& scratch, Matrix<T, Space>& output) const;

  /// Batch normalisation's state, saved with the weights: mean and variance [1, hidden] of layers 1
  /// .. L-1, in turn. Empty unless normalize = "batch".
  std::vector<Matrix<T, Space>>& running_statistics() { return running_statistics_; }
  const std::vector<Matrix<T, Space>>& running_statistics() const { return running_statistics_; }
  /// "layer1.mean", "layer1.variance", ...: beside running_statistics().
  const std::vector<std::string>& statistic_names() const { return statistic_names_; }
  /// Mean and unbiased variance of the last forward's minibatch, same shapes.
  const std::vector<Matrix<T, Space>>& batch_statistics() const { return batch_statistics_; }
  /// running = 0.9 running + 0.1 mean_of_step, where mean_of_step is the mean of batch_statistics()
  /// over a step's minibatches.
  void update_running_statistics(const Space&, const std::vector<Matrix<T, Space>>& mean_of_step);
  void update_running_statistics(
      const std::vector<Matrix<T>>& mean_of_step) requires std::is_same_v<Space, Cpu> {
    update_running_statistics(Cpu{}, mean_of_step);
  }

 private:
  /// What forward keeps of one layer for backward.
  struct Activations {
    Matrix<T, Space> product;            ///< B X if the layer aggregates first, X W otherwise
    Matrix<T, Space> linear;             ///< Z; then, with normalisation, x^; without,
                                         ///< H[l] in place
    Matrix<T, Space> inverse_deviation;  ///< 1 / sqrt(variance + eps): [1, out] for batch,
                                         ///< [rows, 1] for layer normalisation
    Matrix<T, Space> output;             ///< H[l], if the layer normalises
  };

  void add_parameter(const Space&, std::uint64_t seed, int layer, const char* name, std::int64_t rows,
                     std::int64_t columns);
  void add_statistic(const Space&, int layer, const char* name, std::int64_t columns, T start);
  bool normalizes(int layer) const { return shape_.normalize != "none" && layer < shape_.layers; }
  Activations& activations_of(int layer) { return activations_[layer - 1]; }
  Matrix<T, Space>& output_of(int layer);
  const Matrix<T, Space>& input_of(int layer, const Matrix<T, Space>& input);
  const Matrix<T, Space>& value(int layer, int place) const;
  void convolve(const Space&, int layer, const BlockView<Space>&, Order, const Matrix<T, Space>& x,
                Matrix<T, Space>& product, Matrix<T, Space>& z) const;
  void activate(const Space&, int layer, const Pass& pass);
  void backward_of_convolution(const Space&, int layer, const BlockView<Space>&, const Matrix<T, Space>& x,
                               const Matrix<T, Space>& dz, std::vector<Matrix<T, Space>>& gradients,
                               Matrix<T, Space>* dx);
  void backward_of_activation(const Space&, int layer, Matrix<T, Space>& gradient,
                              std::vector<Matrix<T, Space>>& gradients);

  NetworkShape shape_;
  std::vector<Parameter<T, Space>> parameters_;
  std::vector<std::size_t> first_parameter_;  ///< per layer, its place in parameters_
  std::vector<Matrix<T, Space>> running_statistics_, batch_statistics_;
  std::vector<std::string> statistic_names_;
  std::vector<Activations> activations_;       ///< per layer
  Matrix<T, Space> dropped_input_;             ///< H[0] when input_dropout > 0
  Matrix<T, Space> gradient_, next_gradient_;  ///< dH on its way back
  Csr<std::int32_t, Space> transposed_;
};

/// The weights and running statistics of one network to another of the same shape, by way of the
/// host where they lie.
void copy_weights(const Cuda&, const Network<float, Cuda>& from, Network<float>& to);
void copy_weights(const Cuda&, const Network<float>& from, Network<float, Cuda>& to);

}  // namespace espalier
