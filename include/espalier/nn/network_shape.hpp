// What a network consists of, before any of it is there: networks are made by it, and plans, memory
// checks and configs ask it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/config.hpp"
#include "espalier/feature/input_tables.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/nn/layer.hpp"

namespace espalier {

/// What a network reads of a graph: rows of one width, of one type of vertices and one relation; or
/// of several.
struct InputShape {
  std::int64_t width = 0;  ///< of the widest rows
  struct Type {
    std::string name;
    int table = 0;           ///< whose rows are its (feature/input_tables.hpp); -1: it has none
    std::int64_t width = 0;  ///< of its rows; 0: that of the widest
  };
  std::vector<Type> types = {};          ///< of a graph with several types, in order
  std::vector<std::int64_t> pairs = {};  ///< of a row of each table; 0: its rows come as they are
                                         ///< (dense/paired_rows.hpp); may be empty: so do all
  std::int64_t relations = 1;
  bool trainable = false;          ///< are there embeddings among the rows?
  std::int64_t edge_features = 0;  ///< of edges, as wide as the relation with most

  InputShape() = default;
  InputShape(std::int64_t width_) : width(width_) {}
};
/// Of a graph, whose rows are in these tables; `apart`: are its relations seen?
InputShape input_shape(const GraphInfo& graph, bool apart, const std::vector<InputTable>& tables);

struct NetworkShape {
  std::string kind = "sage";  ///< of its layers: a name of layer_kinds()
  int layers = 2;
  std::int64_t inputs = 0, hidden = 0, classes = 0;  ///< widths; classes: of what it gives
  double dropout = 0, input_dropout = 0;             ///< probability that an element is
                                                     ///< dropped, in [0, 1)
  std::string normalize = "none";                    ///< "none" | "batch" | "layer"
  std::string activation = "relu";                   ///< "relu" | "elu"
  std::int64_t heads = 1, output_heads = 1;          ///< of attention, in hidden layers
                                                     ///< and the last
  double attention_dropout = 0;
  std::string aggregator = "mean";           ///< "mean" | "max" | "sum"
  bool residual = false;                     ///< each layer's input is added to its result
  std::string jumping = "none";              ///< "none" | "concat" | "max"
  bool input_gradient = false;               ///< will the gradient by the input be asked for?
                                             ///< (gives_dx)
  std::vector<InputShape::Type> types = {};  ///< where there are several, the rows of each go
                                             ///< through a linear map of its own to `hidden`
  std::vector<std::int64_t> pairs = {};      ///< InputShape::pairs
  std::int64_t relations = 1, bases = 1;
  std::int64_t edge_features = 0;              ///< numbers that edges bring
  std::vector<TensorShape> task_tensors = {};  ///< of what its result is evaluated by: kept,
                                               ///< trained and saved with its own, as "task.NAME"
};

/// Of a config, with what "auto" stands for in it. Without layers: of one that gives each vertex
/// its own row (src/nn/none.inl.hpp).
NetworkShape network_shape(const ModelConfig& model, const InputShape& input, std::int64_t classes,
                           std::vector<TensorShape> task_tensors = {});

/// The kind of a config's layers.
const LayerKind& layer_kind_of(const ModelConfig& model);

/// The matrix that a model multiplies by.
MatrixForm matrix_form(const ModelConfig& model);
/// Is that one whose entries have weights of their own, so that a sampler estimates it with values
/// (Aggregation::kMatrix), and the file's edge weights count in any case?
inline bool has_own_weights(const ModelConfig& model) {
  return matrix_form(model) != MatrixForm::kMean;
}

/// Throws UserError(kUsage) for a key that the kind of layer would ignore, unless it has its
/// default.
void check_model_keys(const Config& config);

/// Throws UserError(kUsage) for a shape that makes no sense.
void check_shape(const NetworkShape& shape);

/// Does its first layer read rows of pairs as entries of a sparse matrix? Else they become a matrix
/// first.
bool reads_entries(const NetworkShape& shape);
/// How wide the rows of a table are for it.
std::int64_t table_width(const NetworkShape& shape, std::size_t table);
/// How wide the widest rows are that it makes of pairs; 0: it makes none.
std::int64_t widened_width(const NetworkShape& shape);

/// A layer of a network, and what stands around it.
struct NetworkLayer {
  LayerShape layer;
  bool activates = true;  ///< do normalisation, activation and dropout follow?
  bool normalizes = false;
  bool adds_input = false;           ///< is the input added?
  bool projects_input = false;       ///< multiplied by a matrix first, as the widths differ?
  std::size_t first_tensor = 0;      ///< its place among the network's
  std::vector<TensorShape> tensors;  ///< the layer's; then "residual"; then "scale" and "shift"
  std::size_t own_tensors = 0;       ///< how many are the layer's
};

/// Layers 1 .. L, and with jumping knowledge the linear layer at the end as a further one, whose
/// tensors are "weight" and "bias".
std::vector<NetworkLayer> network_layers(const NetworkShape& shape);

/// The tensors of the linear maps of several types, which follow those of the layers: for each type
/// "input.weight.TYPE", where it has rows, and "input.bias.TYPE".
struct InputTensor {
  std::string name;
  TensorShape shape;
  int type;
  bool is_bias;
};
std::vector<InputTensor> input_tensors(const NetworkShape& shape);

/// Tensors of a network whose gradients a backward pass has at once: a run of them.
struct GradientGroup {
  std::size_t first = 0, count = 0;  ///< of the network's tensors; count may be 0
  std::int64_t numbers = 0;          ///< in all of them
};

/// In the order of the backward pass: the task's, which are there before it begins; then those of
/// each of network_layers(), from the last to the first; then those of the input's linear maps.
std::vector<GradientGroup> gradient_groups(const NetworkShape& shape);

/// Numbers and tensors that are trained; those of the running means and variances.
struct NetworkSize {
  double parameters = 0;
  std::int64_t tensors = 0;
  double statistics = 0;
  std::int64_t statistic_tensors = 0;
};
NetworkSize network_size(const NetworkShape& shape);

}  // namespace espalier
