// A graph neural network of L layers, its forward and its backward pass.
//
//     H[0] = dropout(X)                           X [F[0], inputs]: features of the input frontier;
//                                                 of several types, X_t W_t + b_t for each
//     Z[l] = LAYER(B[l], H[l-1]) (+ H[l-1], or H[l-1] W_residual where widths differ), l = 1 .. L
//     H[l] = dropout(f(normalise(Z[l])))          for l < L
//     logits = Z[L]                               [seeds, classes]
//
// With jumping knowledge H[L] is made like the others, and logits = J W + b of all H[l]
// (nn/between_layers.hpp). The kinds of layers are a table (nn/layer.hpp).
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
// waits for none, but where attention over relations asks where a block's segments begin
// (sparse/relation_segments.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/nn/between_layers.hpp"
#include "espalier/nn/layer.hpp"
#include "espalier/nn/network_shape.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// What the dropout masks of one minibatch are keyed by.
struct Pass {
  std::uint64_t seed = 0, epoch = 0, batch = 0;
};

/// The rows of X of the input frontier, table after table (InputShape): one [vertices, inputs]
/// where there are no types; of several types, table k has a row for each vertex of a type that is
/// its, in their order. Tables of pairs (NetworkShape::pairs) have 2 pairs for a width.
template <class T, class Space = Cpu>
struct InputRows {
  std::vector<const Matrix<T, Space>*> tables;

  InputRows(const Matrix<T, Space>& only) : tables{&only} {}
  explicit InputRows(std::vector<const Matrix<T, Space>*> tables_) : tables(std::move(tables_)) {}
  const Matrix<T, Space>& only() const { return *tables[0]; }
};

/// Where the derivatives by them go, resized; null: nowhere.
template <class T, class Space = Cpu>
struct InputGradients {
  std::vector<Matrix<T, Space>*> tables;

  InputGradients(Matrix<T, Space>* only = nullptr) : tables{only} {}
  explicit InputGradients(std::vector<Matrix<T, Space>*> tables_) : tables(std::move(tables_)) {}
  Matrix<T, Space>* only() const { return tables[0]; }
  /// Those of no table, -1, go nowhere.
  Matrix<T, Space>* of(int table) const {
    return table >= 0 && table < std::ssize(tables) ? tables[static_cast<std::size_t>(table)] : nullptr;
  }
};

/// The rows of H[l] that layer l + 1 reads where layer l computes some of them only. Arrays of
/// the space.
template <class T, class Space = Cpu>
struct JoinedLayer {
  std::span<const std::int64_t> place;      ///< [rows] k >= 0 is row k of those that are computed,
                                            ///< ~j is row j of `given`: as gather_rows
                                            ///< (dense/gather.hpp) takes it
  std::span<const std::int64_t> computed;   ///< [computed rows] which of the joined rows each is
  const Matrix<T, Space>* given = nullptr;  ///< before dropout
  /// [computed rows] where each has its flag in `drawn`, whose flags are not 0 for rows that are
  /// computed by a draw; null: none is.
  std::span<const std::int64_t> positions = {};
  const std::uint8_t* drawn = nullptr;
};

/// Of a minibatch whose blocks read such rows.
template <class T, class Space = Cpu>
struct JoinedRows {
  std::vector<JoinedLayer<T, Space>> layers;  ///< [L] of H[l]; that of 0 is not read
  double weight = 1;  ///< what gradients of drawn rows are multiplied by before they go on
};

template <class T, class Space>
class TypedInput;

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
  std::vector<Parameter<T, Space>>& parameters() & { return parameters_; }
  const std::vector<Parameter<T, Space>>& parameters() const& { return parameters_; }
  void parameters() const&& = delete;
  /// The last of them: NetworkShape::task_tensors. Their gradients are not backward's to write.
  std::span<const Parameter<T, Space>> task_tensors() const& {
    return std::span(parameters_).last(shape_.task_tensors.size());
  }
  void task_tensors() const&& = delete;
  /// Matrices of their shapes, not initialised: on a GPU in one array, apart as the weights are,
  /// or, as gradients, one right behind the other.
  std::vector<Matrix<T, Space>> like_parameters(bool apart) const;
  std::vector<Matrix<T, Space>> make_gradients() const { return like_parameters(/*apart=*/false); }
  /// The number of trained numbers.
  std::int64_t parameter_count() const;
  /// Widths of what layer 1 .. L reads and writes; with jumping knowledge L + 1 makes the logits.
  std::int64_t input_width(int layer) const {
    return layer == 1 && typed_input_ ? shape_.inputs : shape_of(layer).layer.in;
  }
  std::int64_t output_width(int layer) const { return shape_of(layer).layer.out; }

  /// How many rows of a table go with a list of so many vertices, of these runs.
  std::int64_t input_rows(std::span<const TypeRun> runs, std::int64_t vertices, int table = 0) const;

  /// What evaluation goes through: layers 1 .. L, and with jumping knowledge the one that makes the
  /// logits of them.
  int stages() const { return static_cast<int>(shapes_.size()); }

  /// The training forward pass. blocks[0] belongs to layer 1 (input side), blocks[L-1] to the
  /// seeds; blocks[l].columns == blocks[l-1].rows; the rows of blocks[0].columns vertices. Returns
  /// logits [blocks[L-1].rows, classes], valid until the next forward.
  /// With `joined` blocks[l] has a column for each of the rows that layers[l] joins, some of which
  /// are given; dropout is that of the joined rows. Not with batch normalisation or
  /// jumping knowledge. It must stay until backward is done.
  const Matrix<T, Space>& forward(const Space&, std::span<const BlockView<Space>> blocks,
                                  const InputRows<T, Space>& rows, const Pass& pass,
                                  const JoinedRows<T, Space>* joined = nullptr);

  /// Gradients of the loss whose derivative by the logits is `dlogits`, one per parameter in the
  /// order of parameters(), made by make_gradients() (here where there are none), overwritten but
  /// for those of task_tensors(). Everything else must be as in the forward pass just before: it
  /// reads the activations that pass has kept.
  /// `dinput` become the derivatives by X. `has_groups`, where it is not empty, is called with the
  /// number of gradient_groups() whose gradients are there, from the first on, whenever there are
  /// more (on a GPU: when what was launched so far is done).
  void backward(const Space&, std::span<const BlockView<Space>> blocks, const InputRows<T, Space>& rows,
                const Pass& pass, const Matrix<T, Space>& dlogits, std::vector<Matrix<T, Space>>& gradients,
                const InputGradients<T, Space>& dinput = {},
                const std::function<void(std::size_t groups)>& has_groups = {});

  /// Of the forward pass with joined rows just before: H[l] of those computed as it is before
  /// dropout, and, when backward is done, the derivatives by H[l] of all rows that layers[l] joins.
  const Matrix<T, Space>& computed_rows(int layer) & { return output_of(layer); }
  const Matrix<T, Space>& needed_gradients(int layer) { return kept_of(layer).joined_gradient; }

  /// Layer 1 .. L without dropout, with running statistics: what follows it included. rows: of
  /// layer 1 rows of X, of the others one [block.columns, input_width(layer)]; output becomes
  /// [block.rows, output_width(layer)]; no two may be the same matrix. `scratch` is memory to work
  /// in, which the next layer may use again.
  void evaluate_layer(const Space&, int layer, const BlockView<Space>& block, const InputRows<T, Space>& rows,
                      LayerScratch<T, Space>& scratch, Matrix<T, Space>& output) const;

  /// With jumping knowledge: does evaluation go on with the results of all layers?
  bool jumps() const { return jumping_ != Jumping::kNone; }
  /// Takes up what layer 1 .. L, in turn, has given for some rows: h [rows, hidden] into `jumped`
  /// [rows, input_width(L + 1)]. `winners` is memory to work in.
  void take_up_layer(const Space&, int layer, ConstMatrixView<T, Space> h,
                     Array<Space, std::int32_t>& winners, MatrixView<T, Space> jumped) const;
  /// logits [rows, classes] of what was taken up of all layers.
  void evaluate_output(const Space&, ConstMatrixView<T, Space> jumped, Matrix<T, Space>& logits) const;

  /// Batch normalisation's state, saved with the weights: mean and variance [1, hidden] of layers 1
  /// .. L-1 (L with jumping knowledge), in turn. Empty unless normalize = "batch".
  std::vector<Matrix<T, Space>>& running_statistics() { return running_statistics_; }
  const std::vector<Matrix<T, Space>>& running_statistics() const { return running_statistics_; }
  /// "layer1.mean", "layer1.variance", ...: beside running_statistics().
  const std::vector<std::string>& statistic_names() const { return statistic_names_; }
  /// Mean and unbiased variance of the last forward's minibatch, same shapes.
  const std::vector<Matrix<T, Space>>& batch_statistics() const { return batch_statistics_; }
  /// The same times what they were divided by, a mean by the minibatch's rows, a variance by one
  /// less, to be summed over the minibatches of a step; and last these divisors [1, statistics].
  void weigh_statistics(const Space&, std::vector<Matrix<T, Space>>& weighted) const;
  /// running = 0.9 running + 0.1 of the step, from the sums of weigh_statistics(): the mean of all
  /// rows, and the variance about the means of their minibatches. Without a divisor it stays.
  void update_running_statistics(const Space&, const std::vector<Matrix<T, Space>>& sums_of_step);

 private:
  using M = Matrix<T, Space>;

  /// A layer and what forward keeps of it for backward.
  struct Kept {
    std::unique_ptr<Layer<T, Space>> layer;
    M linear;                   ///< Z; then, with normalisation, x^; without, H[l] in place
    M inverse_deviation;        ///< 1 / sqrt(variance + eps): [1, out] for batch, [rows, 1] for
                                ///< layer normalisation
    M output;                   ///< H[l], if the layer normalises
    M joined, joined_gradient;  ///< where rows are joined, what the next layer reads, after dropout
  };

  void add_parameter(const Space&, std::uint64_t seed, int layer, const std::string& name,
                     const TensorShape& shape);
  void add_statistic(const Space&, int layer, const char* name, std::int64_t columns, T start);
  const NetworkLayer& shape_of(int layer) const { return shapes_[layer - 1]; }
  Kept& kept_of(int layer) { return layers_[layer - 1]; }
  M& output_of(int layer) {
    return shape_of(layer).normalizes ? kept_of(layer).output : kept_of(layer).linear;
  }
  LayerInput<T, Space> input_of(int layer, const InputRows<T, Space>& input);
  void begin_with(const Space&, const BlockView<Space>& first_block, const InputRows<T, Space>& input,
                  const Pass& pass);
  /// Do rows of a table come in pairs, and does a matrix have to be made of them?
  bool widens(std::size_t table) const {
    return table < shape_.pairs.size() && shape_.pairs[table] > 0 && !reads_entries(shape_);
  }
  void widen(const Space&, const InputRows<T, Space>& input, std::vector<M>& widened) const;
  InputRows<T, Space> in_matrices(const InputRows<T, Space>& input, const std::vector<M>& widened) const;
  PairedRows<T, Space> pairs_of(const M& table, std::size_t number) const {
    return {table, table_width(shape_, number)};
  }
  LayerInput<T, Space> first_input(const Space&, const BlockView<Space>& block,
                                   const InputRows<T, Space>& rows, LayerScratch<T, Space>& scratch) const;
  void backward_of_begin(const Space&, const BlockView<Space>& first_block, const InputRows<T, Space>& input,
                         const Pass& pass, std::vector<M>& gradients, const InputGradients<T, Space>& dinput);
  /// The tensors of a layer, and a gradient beside each.
  std::span<const Parameter<T, Space>> tensors_of(int layer) const {
    return std::span(parameters_).subspan(shape_of(layer).first_tensor, shape_of(layer).tensors.size());
  }
  std::span<M> gradients_of(int layer, std::vector<M>& gradients) const {
    return std::span(gradients).subspan(shape_of(layer).first_tensor, shape_of(layer).tensors.size());
  }
  M& bias_of(int layer, std::vector<M>& gradients) const {
    return gradients_of(layer, gradients)[shape_of(layer).own_tensors - 1];
  }
  static RandomStream mask_of(const Pass& pass, Purpose purpose, int layer) {
    return {pass.seed, purpose, pass.epoch, pass.batch, static_cast<std::uint64_t>(layer), 0};
  }
  void add_input(const Space&, int layer, std::int64_t rows, const LayerInput<T, Space>& x, M& z) const;
  void follow(const Space&, int layer, const Pass& pass);
  void join(const Space&, int layer, const Pass& pass);
  void backward_of_join(const Space&, int layer, const Pass& pass);
  /// Of what follows a layer: dropout comes when rows are joined.
  double dropout_after() const { return joined_ != nullptr ? 0 : shape_.dropout; }
  void jump(const Space&);
  void backward_of_jump(const Space&, const M& dlogits, std::vector<M>& gradients);
  void add_gradient_of_jump(const Space&, int layer, M& gradient) const;
  void backward_of_input(const Space&, int layer, std::int64_t rows, const LayerInput<T, Space>& x,
                         const M& dz, std::vector<M>& gradients, M* dx) const;
  void backward_of_activation(const Space&, int layer, const Pass& pass, M& gradient,
                              std::vector<M>& gradients);

  NetworkShape shape_;
  std::vector<NetworkLayer> shapes_;
  Activation activation_;
  Jumping jumping_;
  std::vector<Parameter<T, Space>> parameters_;
  std::vector<M> running_statistics_, batch_statistics_;
  std::vector<std::string> statistic_names_;
  std::vector<Kept> layers_;
  std::shared_ptr<const TypedInput<T, Space>> typed_input_;  ///< of a graph of several types
  /// Of several types, by their linear maps.
  M projected_, dprojected_;
  const JoinedRows<T, Space>* joined_ = nullptr;           ///< of the forward pass just before
  M dropped_input_;                                        ///< H[0] when input_dropout > 0
  std::vector<M> widened_;                                 ///< tables of pairs, as matrices
  Csr<std::int32_t, Space> entries_, transposed_entries_;  ///< or H[0] as a sparse matrix
  M gradient_, next_gradient_;                             ///< dH on its way back
  M jumped_, jumped_gradient_, logits_;
  Array<Space, std::int32_t> winners_;  ///< of jumping knowledge by the largest
  LayerScratch<T, Space> scratch_;
};

/// The weights and running statistics of one network to another of the same shape.
void copy_weights(const Cuda&, const Network<float>& from, Network<float, Cuda>& to);

}  // namespace espalier
