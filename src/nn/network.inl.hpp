// What a network does (espalier/nn/network.hpp), for every space: it composes leaves, which have a
// version for each. Included by the one source file per space that instantiates it, network.cpp and
// network.cu.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>
#include <type_traits>
#include <utility>

#include "espalier/base/error.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/nn/batch_norm.hpp"
#include "espalier/nn/dropout.hpp"
#include "espalier/nn/layer_norm.hpp"
#include "espalier/nn/network.hpp"
#include "espalier/sparse/transpose.hpp"
#include "gcn.inl.hpp"
#include "sage.inl.hpp"

namespace espalier {

inline void check_shape(const NetworkShape& s) {
  if (s.kind != "sage" && s.kind != "gcn") usage_error("model kind \"{}\" is not one of sage, gcn", s.kind);
  if (s.normalize != "none" && s.normalize != "batch" && s.normalize != "layer")
    usage_error("normalize \"{}\" is not one of none, batch, layer", s.normalize);
  if (s.layers < 1) usage_error("a network needs at least 1 layer, not {}", s.layers);
  if (s.inputs < 1 || s.classes < 1 || (s.layers > 1 && s.hidden < 1))
    usage_error("widths must be positive: {} inputs, {} hidden, {} classes", s.inputs, s.hidden, s.classes);
  for (const double rate : {s.dropout, s.input_dropout})
    if (!(rate >= 0 && rate < 1)) usage_error("dropout {} is not in [0, 1)", rate);
}

inline RandomStream mask_of(const Pass& pass, int layer) {
  return {pass.seed, Purpose::kDropout, pass.epoch, pass.batch, static_cast<std::uint64_t>(layer), 0};
}

/// Where a layer's tensors stand among its parameters; scale and shift follow the convolution's.
inline constexpr int kSelf = 0, kNeighbour = 1, kSageBias = 2;
inline constexpr int kWeight = 0, kGcnBias = 1;
inline int scale_place(const NetworkShape& shape) {
  return shape.kind == "sage" ? kSageBias + 1 : kGcnBias + 1;
}

/// Uniform in +- sqrt(6 / (in + out)): the variance that keeps activations and gradients alike from
/// layer to layer.
template <class T>
void draw_weights(const RandomStream& stream, Matrix<T>& weights) {
  const double limit = std::sqrt(6.0 / static_cast<double>(weights.rows + weights.columns));
  for (std::size_t e = 0; e < weights.data.size(); ++e)
    weights.data[e] = static_cast<T>(limit * (2 * to_unit_double(random64(stream, e)) - 1));
}

/// What was made on the host, where the space has its memory.
template <class T, class Space>
Matrix<T, Space> placed(const Space& space, Matrix<T> values) {
  if constexpr (std::is_same_v<Space, Cpu>) {
    return values;
  } else {
    Matrix<T, Space> there;
    upload(space, values, there);
    return there;
  }
}

template <class T, class Space>
Network<T, Space>::Network(const Space& space, const NetworkShape& shape, std::uint64_t seed)
    : shape_(shape) {
  check_shape(shape);
  for (int layer = 1; layer <= shape.layers; ++layer) {
    const std::int64_t in = input_width(layer), out = output_width(layer);
    first_parameter_.push_back(parameters_.size());
    if (shape.kind == "sage") add_parameter(space, seed, layer, "self", in, out);
    add_parameter(space, seed, layer, shape.kind == "sage" ? "neighbour" : "weight", in, out);
    add_parameter(space, seed, layer, "bias", 1, out);
    if (!normalizes(layer)) continue;
    add_parameter(space, seed, layer, "scale", 1, out);
    add_parameter(space, seed, layer, "shift", 1, out);
    if (shape.normalize != "batch") continue;
    add_statistic(space, layer, "mean", out, T{0});
    add_statistic(space, layer, "variance", out, T{1});
  }
  activations_.resize(shape.layers);
}

template <class T, class Space>
void Network<T, Space>::add_parameter(const Space& space, std::uint64_t seed, int layer, const char* name,
                                      std::int64_t rows, std::int64_t columns) {
  const std::string_view kind(name);
  const bool is_weight = kind != "bias" && kind != "scale" && kind != "shift";
  Matrix<T> values(rows, columns);
  if (is_weight)
    draw_weights({seed, Purpose::kInitialWeights, 0, 0, parameters_.size(), 0}, values);
  else
    std::ranges::fill(values.data, kind == "scale" ? T{1} : T{0});
  parameters_.push_back(
      {fmt::format("layer{}.{}", layer, name), layer, is_weight, placed(space, std::move(values))});
}

template <class T, class Space>
void Network<T, Space>::add_statistic(const Space& space, int layer, const char* name, std::int64_t columns,
                                      T start) {
  Matrix<T> values(1, columns);
  std::ranges::fill(values.data, start);
  statistic_names_.push_back(fmt::format("layer{}.{}", layer, name));
  batch_statistics_.push_back(placed(space, values));
  running_statistics_.push_back(placed(space, std::move(values)));
}

template <class T, class Space>
std::int64_t Network<T, Space>::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& parameter : parameters_) count += static_cast<std::int64_t>(parameter.value.data.size());
  return count;
}

template <class T, class Space>
std::int64_t Network<T, Space>::input_width(int layer) const {
  return layer == 1 ? shape_.inputs : shape_.hidden;
}

template <class T, class Space>
std::int64_t Network<T, Space>::output_width(int layer) const {
  return layer == shape_.layers ? shape_.classes : shape_.hidden;
}

template <class T, class Space>
Matrix<T, Space>& Network<T, Space>::output_of(int layer) {
  return normalizes(layer) ? activations_of(layer).output : activations_of(layer).linear;
}

template <class T, class Space>
const Matrix<T, Space>& Network<T, Space>::input_of(int layer, const Matrix<T, Space>& input) {
  if (layer > 1) return output_of(layer - 1);
  return shape_.input_dropout > 0 ? dropped_input_ : input;
}

/// Tensor number `place` of a layer.
template <class T, class Space>
const Matrix<T, Space>& Network<T, Space>::value(int layer, int place) const {
  return parameters_[first_parameter_[layer - 1] + static_cast<std::size_t>(place)].value;
}

template <class T, class Space>
bool Network<T, Space>::aggregates_input(const BlockView<Space>& first_block) const {
  return shape_.input_dropout == 0 &&
         cheaper_order(first_block, input_width(1), output_width(1), false) == Order::kAggregateFirst;
}

template <class T, class Space>
const Matrix<T, Space>& Network<T, Space>::forward(const Space& space,
                                                   std::span<const BlockView<Space>> blocks,
                                                   const Matrix<T, Space>& input, const Pass& pass,
                                                   InputForm form) {
  ESPALIER_CHECK(static_cast<int>(blocks.size()) == shape_.layers, "{} blocks for {} layers", blocks.size(),
                 shape_.layers);
  ESPALIER_CHECK(input.columns == shape_.inputs, "input has {} columns, not {}", input.columns,
                 shape_.inputs);
  const bool aggregated = form == InputForm::kAggregated;
  if (aggregated) {
    const auto& product = activations_of(1).product;
    ESPALIER_CHECK(
        aggregates_input(blocks[0]) && product.rows == blocks[0].rows && input.rows >= product.rows,
        "a product of {} rows and an input of {} for {} rows", product.rows, input.rows, blocks[0].rows);
  }
  if (shape_.input_dropout > 0)
    dropout<T>(space, mask_of(pass, 0), shape_.input_dropout, input, dropped_input_);
  for (int layer = 1; layer <= shape_.layers; ++layer) {
    const BlockView<Space>& block = blocks[layer - 1];
    const Order order = aggregated && layer == 1
                            ? Order::kAggregated
                            : cheaper_order(block, input_width(layer), output_width(layer), layer > 1);
    auto& kept = activations_of(layer);
    convolve(space, layer, block, order, input_of(layer, input), kept.product, kept.linear);
    if (layer < shape_.layers) activate(space, layer, pass);
  }
  return activations_of(shape_.layers).linear;
}

template <class T, class Space>
void Network<T, Space>::convolve(const Space& space, int layer, const BlockView<Space>& block, Order order,
                                 const Matrix<T, Space>& x, Matrix<T, Space>& product,
                                 Matrix<T, Space>& z) const {
  if (shape_.kind == "sage") {
    const SageTensors<const Matrix<T, Space>> weights{value(layer, kSelf), value(layer, kNeighbour),
                                                      value(layer, kSageBias)};
    sage_forward<T>(space, block, order, x, weights, product, z);
  } else {
    const GcnTensors<const Matrix<T, Space>> weights{value(layer, kWeight), value(layer, kGcnBias)};
    gcn_forward<T>(space, block, order, x, weights, product, z);
  }
}

/// H = dropout(relu(normalise(Z))).
template <class T, class Space>
void Network<T, Space>::activate(const Space& space, int layer, const Pass& pass) {
  auto& kept = activations_of(layer);
  if (normalizes(layer)) {
    const Matrix<T, Space>&scale = value(layer, scale_place(shape_)),
                    &shift = value(layer, scale_place(shape_) + 1);
    if (shape_.normalize == "batch") {
      auto* statistics = &batch_statistics_[2 * static_cast<std::size_t>(layer - 1)];
      batch_norm_forward<T>(space, kept.linear, scale, shift, kept.output, kept.inverse_deviation,
                            statistics[0], statistics[1]);
    } else {
      layer_norm_forward<T>(space, kept.linear, scale, shift, kept.output, kept.inverse_deviation);
    }
  }
  relu_dropout<T>(space, mask_of(pass, layer), shape_.dropout, output_of(layer));
}

template <class T, class Space>
void Network<T, Space>::backward(const Space& space, std::span<const BlockView<Space>> blocks,
                                 const Matrix<T, Space>& input, const Pass&, const Matrix<T, Space>& dlogits,
                                 std::vector<Matrix<T, Space>>& gradients) {
  gradients.resize(parameters_.size());
  for (std::size_t k = 0; k < parameters_.size(); ++k)
    gradients[k].resize(parameters_[k].value.rows, parameters_[k].value.columns);
  for (int layer = shape_.layers; layer >= 1; --layer) {
    if (layer < shape_.layers) backward_of_activation(space, layer, gradient_, gradients);
    const Matrix<T, Space>& dz = layer == shape_.layers ? dlogits : gradient_;
    backward_of_convolution(space, layer, blocks[layer - 1], input_of(layer, input), dz, gradients,
                            layer > 1 ? &next_gradient_ : nullptr);
    std::swap(gradient_, next_gradient_);
  }
}

/// gradient = dH becomes dZ.
template <class T, class Space>
void Network<T, Space>::backward_of_activation(const Space& space, int layer, Matrix<T, Space>& gradient,
                                               std::vector<Matrix<T, Space>>& gradients) {
  const auto& kept = activations_of(layer);
  relu_dropout_backward<T>(space, shape_.dropout, output_of(layer), gradient);
  if (!normalizes(layer)) return;
  const Matrix<T, Space>& scale = value(layer, scale_place(shape_));
  auto* to = &gradients[first_parameter_[layer - 1] + static_cast<std::size_t>(scale_place(shape_))];
  if (shape_.normalize == "batch")
    batch_norm_backward<T>(space, kept.linear, kept.inverse_deviation, scale, gradient, to[0], to[1]);
  else
    layer_norm_backward<T>(space, kept.linear, kept.inverse_deviation, scale, gradient, to[0], to[1]);
}

template <class T, class Space>
void Network<T, Space>::backward_of_convolution(const Space& space, int layer, const BlockView<Space>& block,
                                                const Matrix<T, Space>& x, const Matrix<T, Space>& dz,
                                                std::vector<Matrix<T, Space>>& gradients,
                                                Matrix<T, Space>* dx) {
  const Order order = cheaper_order(block, input_width(layer), output_width(layer), layer > 1);
  if (dx != nullptr || order == Order::kMultiplyFirst) transpose(space, block, transposed_);
  Matrix<T, Space>& product = activations_of(layer).product;
  auto* to = &gradients[first_parameter_[layer - 1]];
  if (shape_.kind == "sage") {
    const SageTensors<const Matrix<T, Space>> weights{value(layer, kSelf), value(layer, kNeighbour),
                                                      value(layer, kSageBias)};
    sage_backward<T>(space, block, transposed_, order, x, weights, product, dz,
                     {to[kSelf], to[kNeighbour], to[kSageBias]}, dx);
  } else {
    const GcnTensors<const Matrix<T, Space>> weights{value(layer, kWeight), value(layer, kGcnBias)};
    gcn_backward<T>(space, transposed_, order, x, weights, product, dz, {to[kWeight], to[kGcnBias]}, dx);
  }
}

template <class T, class Space>
void Network<T, Space>::evaluate_layer(const Space& space, int layer, const BlockView<Space>& block,
                                       const Matrix<T, Space>& input, Matrix<T, Space>& scratch,
                                       Matrix<T, Space>& output) const {
  convolve(space, layer, block, evaluation_order(input_width(layer), output_width(layer)), input, scratch,
           output);
  if (layer == shape_.layers) return;
  if (normalizes(layer)) {
    const Matrix<T, Space>&scale = value(layer, scale_place(shape_)),
                    &shift = value(layer, scale_place(shape_) + 1);
    if (shape_.normalize == "batch") {
      const auto* statistics = &running_statistics_[2 * static_cast<std::size_t>(layer - 1)];
      batch_norm_evaluate<T>(space, statistics[0], statistics[1], scale, shift, output);
    } else {
      layer_norm_evaluate<T>(space, scale, shift, output);
    }
  }
  relu_dropout<T>(space, {}, 0.0, output);
}

template <class T, class Space>
void Network<T, Space>::update_running_statistics(const Space& space,
                                                  const std::vector<Matrix<T, Space>>& mean_of_step) {
  ESPALIER_CHECK(mean_of_step.size() == running_statistics_.size(), "{} statistics, not {}",
                 mean_of_step.size(), running_statistics_.size());
  for (std::size_t k = 0; k < mean_of_step.size(); ++k)
    update_running_statistic<T>(space, mean_of_step[k], running_statistics_[k]);
}

}  // namespace espalier
