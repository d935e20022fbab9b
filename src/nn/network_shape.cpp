#include "espalier/nn/network_shape.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/feature/edge_store.hpp"
#include "espalier/feature/input_tables.hpp"
#include "espalier/nn/between_layers.hpp"

namespace espalier {

InputShape input_shape(const GraphInfo& graph, bool apart, const std::vector<InputTable>& tables) {
  InputShape input;
  for (const auto& table : tables) {
    input.width = std::max(input.width, table.width);
    input.trainable |= table.trainable;
    input.pairs.push_back(table.pairs);
  }
  input.edge_features = edge_table(graph).width;
  if (apart) input.relations = std::ssize(graph.schema.relations());
  const auto& types = graph.schema.types();
  for (int t = 0; t < std::ssize(types) && types.size() > 1; ++t) {
    auto& type = input.types.emplace_back(types[static_cast<std::size_t>(t)].name, -1);
    for (int k = 0; k < std::ssize(tables); ++k)
      if (tables[static_cast<std::size_t>(k)].held.holds_type(t))
        std::tie(type.table, type.width) = std::tuple(k, tables[static_cast<std::size_t>(k)].width);
  }
  return input;
}

NetworkShape network_shape(const ModelConfig& model, const InputShape& input, std::int64_t classes,
                           std::vector<TensorShape> task_tensors) {
  const auto& kind = layer_kind_of(model);
  return {
      .kind = std::string(kind.name),
      .layers = std::max(1, static_cast<int>(model.layers)),
      .inputs = input.width,
      .hidden = model.hidden,
      .classes = classes,
      .dropout = model.dropout,
      .input_dropout = model.input_dropout.value.value_or(kind.drops_input ? model.dropout : 0.0),
      .normalize = model.normalize,
      .activation = model.activation == "auto" ? std::string(kind.activation) : model.activation,
      .heads = model.heads,
      .output_heads = model.output_heads,
      .attention_dropout = model.attention_dropout.value.value_or(kind.drops_attention ? model.dropout : 0.0),
      .aggregator = model.aggregator,
      .residual = model.residual,
      .jumping = model.jumping,
      .input_gradient = input.trainable,
      .types = input.types,
      .pairs = input.pairs,
      .relations = input.relations,
      .bases = std::min(model.bases, input.relations),
      .edge_features = model.edge_features ? input.edge_features : 0,
      .task_tensors = std::move(task_tensors)};
}

const LayerKind& layer_kind_of(const ModelConfig& model) {
  return layer_kind_of(model.layers == 0 ? "none" : model.kind);
}

MatrixForm matrix_form(const ModelConfig& model) {
  return layer_kind_of(model).matrix(model.aggregator);
}

void check_model_keys(const Config& config) {
  const auto& model = config.model;
  const auto& kind = layer_kind_of(model);
  const ModelConfig defaults;
  const auto needs = [&](const char* key, bool changed, bool LayerKind::*takes) {
    if (!changed || kind.*takes) return;
    std::string others;
    for (const auto& other : layer_kinds())
      if (other.*takes) others += (others.empty() ? "" : " or ") + std::string(other.name);
    usage_error("model.{} has no meaning with model.kind = {}; leave it out, or use {}", key, kind.name,
                others);
  };
  needs("heads", model.heads != defaults.heads, &LayerKind::takes_heads);
  needs("output_heads", model.output_heads != defaults.output_heads, &LayerKind::takes_heads);
  needs("attention_dropout", model.attention_dropout.value.has_value(), &LayerKind::takes_heads);
  needs("edge_features", model.edge_features, &LayerKind::takes_edges);
  needs("bases", model.bases != defaults.bases, &LayerKind::takes_bases);
  needs("aggregator", model.aggregator != defaults.aggregator, &LayerKind::takes_aggregator);
  if (config.train.sparse_products != "own" && (!kind.multiplies_block || model.aggregator == "max"))
    usage_error("train.sparse_products has no meaning with model.{}; leave it out",
                kind.multiplies_block ? "aggregator = max" : fmt::format("kind = {}", kind.name));
  const bool of_hidden = model.layers > 1 || model.jumping != "none",
             of_input = kind.drops_input && !model.input_dropout.value,
             of_attention = kind.drops_attention && !model.attention_dropout.value;
  if (model.dropout != defaults.dropout && !of_hidden && !of_input && !of_attention)
    usage_error(
        "model.dropout has no meaning with model.layers = {}{}; leave it out", model.layers,
        model.layers > 0 ? fmt::format(" and model.kind = {}", kind.name) : ", model.input_dropout has");
}

void check_shape(const NetworkShape& s) {
  const auto& kind = layer_kind_of(s.kind);
  if (s.normalize != "none" && s.normalize != "batch" && s.normalize != "layer")
    usage_error("normalize \"{}\" is not one of none, batch, layer", s.normalize);
  if (s.aggregator != "mean" && s.aggregator != "max" && s.aggregator != "sum")
    usage_error("aggregator \"{}\" is not one of mean, max, sum", s.aggregator);
  activation_of(s.activation);
  const bool jumps = jumping_of(s.jumping) != Jumping::kNone;
  if (s.layers < 1) usage_error("a network needs at least 1 layer, not {}", s.layers);
  const bool has_inputs = s.inputs >= 1 || !s.types.empty();
  if (!has_inputs || s.classes < 1 || ((s.layers > 1 || jumps || !s.types.empty()) && s.hidden < 1))
    usage_error("widths must be positive: {} inputs, {} hidden, {} classes", s.inputs, s.hidden, s.classes);
  if (kind.name == "none" && s.classes != (s.types.empty() ? s.inputs : s.hidden))
    usage_error("rows {} wide cannot be {} wide without a layer", s.types.empty() ? s.inputs : s.hidden,
                s.classes);
  if (s.heads < 1 || s.output_heads < 1)
    usage_error("attention needs at least 1 head, not {} and {}", s.heads, s.output_heads);
  if (kind.takes_heads && (s.layers > 1 || jumps) && s.hidden % s.heads != 0) {
    const std::int64_t less = s.hidden / s.heads * s.heads, more = less + s.heads;
    usage_error(
        "model.hidden = {} is not a multiple of model.heads = {}; each head is hidden / heads wide: take {}",
        s.hidden, s.heads, less > 0 ? fmt::format("{} or {}", less, more) : std::to_string(more));
  }
  for (const double rate : {s.dropout, s.input_dropout, s.attention_dropout})
    if (!(rate >= 0 && rate < 1)) usage_error("dropout {} is not in [0, 1)", rate);
}

namespace {

/// Of the linear layer that makes logits of what the layers have given.
NetworkLayer output_layer(const NetworkShape& s) {
  const std::int64_t in = s.jumping == "concat" ? s.layers * s.hidden : s.hidden;
  NetworkLayer output;
  output.layer = {.number = s.layers + 1, .in = in, .out = s.classes};
  output.activates = false;
  output.tensors = {{"weight", in, s.classes}, {"bias", 1, s.classes, Start::kZero}};
  output.own_tensors = 2;
  return output;
}

NetworkLayer graph_layer(const NetworkShape& s, const LayerKind& kind, int number) {
  const bool jumps = s.jumping != "none", last = number == s.layers && !jumps;
  NetworkLayer made;
  made.layer = {.number = number,
                .in = number == 1 && s.types.empty() ? s.inputs : s.hidden,
                .out = last ? s.classes : s.hidden,
                .gives_dx = number > 1 || s.input_gradient || !s.types.empty(),
                .heads = last ? s.output_heads : s.heads,
                .averages_heads = last,
                .aggregator = s.aggregator,
                .attention_dropout = s.attention_dropout,
                .types = std::max<std::int64_t>(1, std::ssize(s.types)),
                .relations = s.relations,
                .edge_features = s.edge_features,
                .bases = s.bases,
                .pairs = number == 1 && reads_entries(s) ? s.pairs[0] : 0};
  made.activates = !last;
  made.normalizes = !last && s.normalize != "none";
  made.adds_input = s.residual;
  made.projects_input = s.residual && made.layer.in != made.layer.out;
  made.tensors = kind.tensors(made.layer);
  made.own_tensors = made.tensors.size();
  if (made.projects_input) made.tensors.push_back({"residual", made.layer.in, made.layer.out});
  if (made.normalizes) {
    made.tensors.push_back({"scale", 1, made.layer.out, Start::kOne});
    made.tensors.push_back({"shift", 1, made.layer.out, Start::kZero});
  }
  return made;
}

}  // namespace

bool reads_entries(const NetworkShape& s) {
  // A residual of one width adds X itself.
  const bool adds_rows = s.residual && s.inputs == (s.layers > 1 ? s.hidden : s.classes);
  return s.types.empty() && !s.pairs.empty() && s.pairs[0] > 0 && layer_kind_of(s.kind).takes_entries &&
         s.aggregator != "max" && !adds_rows;
}

std::int64_t table_width(const NetworkShape& shape, std::size_t table) {
  for (const auto& type : shape.types)
    if (type.table == static_cast<int>(table) && type.width > 0) return type.width;
  return shape.inputs;
}

std::int64_t widened_width(const NetworkShape& shape) {
  std::int64_t widest = 0;
  for (std::size_t k = 0; k < shape.pairs.size(); ++k)
    if (shape.pairs[k] > 0 && !reads_entries(shape)) widest = std::max(widest, table_width(shape, k));
  return widest;
}

std::vector<NetworkLayer> network_layers(const NetworkShape& shape) {
  const auto& kind = layer_kind_of(shape.kind);
  std::vector<NetworkLayer> layers;
  for (int number = 1; number <= shape.layers; ++number) layers.push_back(graph_layer(shape, kind, number));
  if (shape.jumping != "none") layers.push_back(output_layer(shape));
  std::size_t tensors = 0;
  for (auto& layer : layers) {
    layer.first_tensor = tensors;
    tensors += layer.tensors.size();
  }
  return layers;
}

std::vector<InputTensor> input_tensors(const NetworkShape& shape) {
  std::vector<InputTensor> tensors;
  for (int t = 0; t < std::ssize(shape.types); ++t) {
    const auto& type = shape.types[t];
    if (type.table >= 0)
      tensors.push_back({"input.weight." + type.name,
                         {"weight", type.width > 0 ? type.width : shape.inputs, shape.hidden},
                         t,
                         false});
    tensors.push_back({"input.bias." + type.name, {"bias", 1, shape.hidden, Start::kZero}, t, true});
  }
  return tensors;
}

std::vector<GradientGroup> gradient_groups(const NetworkShape& shape) {
  std::vector<GradientGroup> groups;
  std::size_t next = 0;
  const auto add = [&](const auto& tensors, const auto& shape_of) {
    GradientGroup group = {.first = next, .count = tensors.size()};
    for (const auto& tensor : tensors) group.numbers += std::llround(shape_of(tensor).numbers());
    groups.push_back(group);
    next += group.count;
  };
  const auto itself = [](const TensorShape& tensor) { return tensor; };
  for (const auto& layer : network_layers(shape)) add(layer.tensors, itself);
  add(input_tensors(shape), [](const InputTensor& tensor) { return tensor.shape; });
  add(shape.task_tensors, itself);
  // first to last: layers, input, task
  std::reverse(groups.begin(), groups.end() - 2);
  std::rotate(groups.begin(), groups.end() - 1, groups.end());
  return groups;
}

NetworkSize network_size(const NetworkShape& shape) {
  NetworkSize size;
  for (const auto& tensor : input_tensors(shape)) {
    size.parameters += tensor.shape.numbers();
    ++size.tensors;
  }
  for (const auto& layer : network_layers(shape)) {
    for (const auto& tensor : layer.tensors) size.parameters += tensor.numbers();
    size.tensors += std::ssize(layer.tensors);
    if (!layer.normalizes || shape.normalize != "batch") continue;
    size.statistics += 2 * static_cast<double>(layer.layer.out);
    size.statistic_tensors += 2;
  }
  for (const auto& tensor : shape.task_tensors) size.parameters += tensor.numbers();
  size.tensors += std::ssize(shape.task_tensors);
  return size;
}

}  // namespace espalier
