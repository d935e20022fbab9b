// One layer of a network: Z = LAYER(B, X), what it keeps for its backward pass, and what the rest
// of the program must know of its kind.
//
//     X [columns, in] the sources, B [rows, columns] the block, Z [rows, out]; the block's rows are
//     its first columns, so the destinations' own vectors are the first rows of X
//
// A kind of layer is a file, src/nn/KIND.inl.hpp, and a line of the table in src/nn/layers.inl.hpp.
// Everything else asks: a network for its tensors, `plan` for its work and memory, the program for
// the matrix it multiplies by, the config for what it ignores.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/base/execution.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/dense/paired_rows.hpp"
#include "espalier/nn/product_order.hpp"
#include "espalier/sparse/csr.hpp"
#include "espalier/sparse/relation_segments.hpp"

namespace espalier {

/// The matrix that a layer multiplies by; a sampled block estimates its rows.
enum class MatrixForm {
  kMean,        ///< A with rows that sum to 1, without self entries of its own
  kNormalized,  ///< D^-1/2 (A + I) D^-1/2
  kSum,         ///< A itself: ones, or the file's edge weights
  kMeanOfSelf,  ///< A + I with rows that sum to 1: of no kind, but of LADIES in mode reference
};

/// What a layer is made for.
struct LayerShape {
  int number = 1;  ///< 1 .. L
  std::int64_t in = 0, out = 0;
  bool gives_dx = true;             ///< is the gradient by its input asked for? Costs and the order
                                    ///< of products go by it; it is given wherever asked
  std::int64_t heads = 1;           ///< of attention
  bool averages_heads = false;      ///< or concatenates them, out / heads wide each
  std::string aggregator = "mean";  ///< "mean" | "max" | "sum"
  double attention_dropout = 0;     ///< probability that an edge's weight is dropped, in [0, 1)
  std::int64_t types = 1;           ///< of the graph's vertices
  std::int64_t relations = 1;       ///< of the graph
  std::int64_t edge_features = 0;   ///< numbers that entries of a block bring (BlockView::edges)
  std::int64_t bases = 1;           ///< that relations share, at most `relations`
  std::int64_t pairs = 0;           ///< of a row of the input, where it comes as entries
                                    ///< (LayerKind::takes_entries); 0: as a matrix
};

/// How a tensor begins.
enum class Start {
  kGlorot,  ///< uniform in +- sqrt(6 / (rows + columns)) (Glorot and Bengio 2010): a weight
  kZero,
  kOne,
  kAngle,  ///< uniform in +- pi
};

/// A trained tensor that is not there yet.
struct TensorShape {
  const char* name;
  std::int64_t rows, columns;
  Start start = Start::kGlorot;
  std::int64_t parts = 1;  ///< matrices one under the other, each of which begins so
  bool decays = start == Start::kGlorot;
  bool follows = false;  ///< the one before, as a part of one matrix (dense/device_matrix.hpp)
  double numbers() const { return static_cast<double>(rows) * static_cast<double>(columns); }
};

/// One that is there.
template <class T, class Space = Cpu>
struct Parameter {
  std::string name;        ///< "layer1.neighbour": unique, part of the checkpoint
  int layer = 1;           ///< 1 .. L
  bool decays = false;     ///< weight matrices only: weight decay on biases and normalisation would
                           ///< fight the data
  Matrix<T, Space> value;  ///< [in, out], or [1, out] for biases, scales and shifts
  bool follows = false;    ///< TensorShape::follows
};

/// The most arrays that a layer works in at once.
inline constexpr int kMostLayerArrays = 16;

/// Multiply-adds of dense products count 2 flops; numbers that sparse products gather; numbers that
/// pass by elementwise work.
struct LayerWork {
  double flops = 0, gathered = 0, elements = 0;
};

/// What a step or an evaluation asks of a layer with a block of a given size.
struct LayerCosts {
  LayerWork forward, backward, evaluation;
  /// Numbers (4 bytes each) of each array: from forward to backward, Z not counted; to work in
  /// during an evaluation; during the backward pass.
  std::vector<double> kept = {}, scratch = {}, backward_scratch = {};
  bool transposes = false;       ///< does backward transpose the block?
  bool keeps_positions = false;  ///< and ask where its entries were?
};

/// What the rest of the program must know of a kind of layer.
struct LayerKind {
  std::string_view name;
  const char* about;  ///< one line for users
  MatrixForm (*matrix)(std::string_view aggregator) = [](std::string_view) { return MatrixForm::kMean; };
  bool drops_input = false;              ///< model.input_dropout = auto is model.dropout, not 0
  std::string_view activation = "relu";  ///< what model.activation = auto stands for
  bool takes_heads = false;              ///< knows model.heads, output_heads and attention_dropout
  bool drops_attention = false;          ///< model.attention_dropout = auto is model.dropout, not 0
  bool takes_edges = false;              ///< knows features of edges (model.edge_features)
  bool takes_aggregator = false;         ///< knows model.aggregator
  bool multiplies_block = false;         ///< calls dense/spmm, but with model.aggregator = max
  bool takes_relations = false;          ///< knows the relations of a typed graph; others see one
  bool takes_bases = false;              ///< knows model.bases
  bool takes_entries = false;            ///< multiplies its input before anything else, so that
                                         ///< this may be sparse; not with model.aggregator = max
  /// The last, where there are some, is the bias [1, out], which every row of Z is given
  /// at the end.
  std::vector<TensorShape> (*tensors)(const LayerShape&);
  /// `block`: of a minibatch; in an evaluation of a chunk, columns being all rows it reads.
  LayerCosts (*costs)(const LayerShape&, const BlockSize& block);
};

/// Those that model.kind can be.
std::span<const LayerKind> layer_kinds();

/// The kind of a name, or "none", what a network without layers consists of. Throws
/// UserError(kUsage) that lists the names when there is none.
const LayerKind& layer_kind_of(std::string_view name);

/// Memory that layers work in, one after another: nothing in it outlives a call.
template <class T, class Space = Cpu>
struct LayerScratch {
  std::array<Matrix<T, Space>, 5> matrices;
  std::array<Matrix<T, Space>, 7> more;  ///< of layers that need many
  Csr<std::int32_t, Space> transposed;
  Array<Space, std::int32_t> positions;  ///< of the transposed entries in the block
  Array<Space, std::int32_t> winners;    ///< of dense/gather_max.hpp; numbers of
                                         ///< dense/relation_sums.hpp
  RelationSegmentsOn<Space> segments;
  Matrix<T, Space> input;                 ///< of several types, by their linear maps
  Csr<std::int32_t, Space> entries;       ///< of a sparse input
  std::vector<Matrix<T, Space>> widened;  ///< tables of pairs
};

/// What a layer reads: a matrix, or the entries of a sparse one (dense/paired_rows.hpp).
template <class T, class Space = Cpu>
struct LayerInput : ConstMatrixView<T, Space> {
  const Csr<std::int32_t, Space>* entries = nullptr;  ///< not null: the view has sizes alone
  Csr<std::int32_t, Space>* transposed = nullptr;     ///< beside them, memory for a backward pass

  LayerInput(const ConstMatrixView<T, Space>& view) : ConstMatrixView<T, Space>(view) {}
  LayerInput(const Matrix<T, Space>& matrix) : ConstMatrixView<T, Space>(matrix) {}
  LayerInput(const Csr<std::int32_t, Space>& entries_, Csr<std::int32_t, Space>* transposed_)
      : ConstMatrixView<T, Space>(entries_.rows, entries_.columns, nullptr),
        entries(&entries_),
        transposed(transposed_) {}

  LayerInput first_rows(std::int64_t count) const {
    auto first = *this;
    first.rows = count;
    return first;
  }
};
template <class Space, class T>
using InputOn = LayerInput<T, std::type_identity_t<Space>>;

template <class T, class Space = Cpu>
class Layer {
 public:
  using Tensors = std::span<const Parameter<T, Space>>;  ///< in the order of LayerKind::tensors

  virtual ~Layer() = default;

  /// Z, resized; keeps what backward reads. `attention` names the mask of attention weights.
  virtual void forward(const Space&, const BlockView<Space>& block, const LayerInput<T, Space>& x,
                       Tensors weights, const KeyedStream& attention, Matrix<T, Space>& z) = 0;

  /// Overwrites the gradients of the tensors, but for the bias, which is the sum of dZ over its
  /// rows and the network's to add up, where dZ is made; and, unless `dx` is null, of X (resized to
  /// [columns, in]). Everything else must be as in the forward pass just before.
  virtual void backward(const Space&, const BlockView<Space>& block, const LayerInput<T, Space>& x,
                        Tensors weights, const Matrix<T, Space>& dz, LayerScratch<T, Space>& scratch,
                        std::span<Matrix<T, Space>> gradients, Matrix<T, Space>* dx) = 0;

  /// Z without dropout. A row depends on the rows it needs only, so that it does not matter which
  /// rows of a graph a block has.
  virtual void evaluate(const Space&, const BlockView<Space>& block, const LayerInput<T, Space>& x,
                        Tensors weights, LayerScratch<T, Space>& scratch, Matrix<T, Space>& z) const = 0;
};

}  // namespace espalier
