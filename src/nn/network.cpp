#include "espalier/nn/network.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "espalier/base/error.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/nn/batch_norm.hpp"
#include "espalier/nn/dropout.hpp"
#include "espalier/nn/gcn.hpp"
#include "espalier/nn/layer_norm.hpp"
#include "espalier/nn/sage.hpp"
#include "espalier/sparse/transpose.hpp"

namespace espalier {
namespace {

constexpr double kRunningMomentum = 0.1;

void check_shape(const NetworkShape& s) {
  if (s.kind != "sage" && s.kind != "gcn") usage_error("model kind \"{}\" is not one of sage, gcn", s.kind);
  if (s.normalize != "none" && s.normalize != "batch" && s.normalize != "layer")
    usage_error("normalize \"{}\" is not one of none, batch, layer", s.normalize);
  if (s.layers < 1) usage_error("a network needs at least 1 layer, not {}", s.layers);
  if (s.inputs < 1 || s.classes < 1 || (s.layers > 1 && s.hidden < 1))
    usage_error("widths must be positive: {} inputs, {} hidden, {} classes", s.inputs, s.hidden, s.classes);
  for (const double rate : {s.dropout, s.input_dropout})
    if (!(rate >= 0 && rate < 1)) usage_error("dropout {} is not in [0, 1)", rate);
}

RandomStream mask_of(const Pass& pass, int layer) {
  return {pass.seed, Purpose::kDropout, pass.epoch, pass.batch, static_cast<std::uint64_t>(layer), 0};
}

/// Where a layer's tensors stand among its parameters; scale and shift follow the convolution's.
constexpr int kSelf = 0, kNeighbour = 1, kSageBias = 2;
constexpr int kWeight = 0, kGcnBias = 1;
int scale_place(const NetworkShape& shape) {
  return shape.kind == "sage" ? kSageBias + 1 : kGcnBias + 1;
}

}  // namespace

template <class T>
Network<T>::Network(const NetworkShape& shape, std::uint64_t seed) : shape_(shape) {
  check_shape(shape);
  for (int layer = 1; layer <= shape.layers; ++layer) {
    const std::int64_t in = input_width(layer), out = output_width(layer);
    first_parameter_.push_back(parameters_.size());
    if (shape.kind == "sage") add_parameter(layer, "self", in, out);
    add_parameter(layer, shape.kind == "sage" ? "neighbour" : "weight", in, out);
    add_parameter(layer, "bias", 1, out);
    if (!normalizes(layer)) continue;
    add_parameter(layer, "scale", 1, out);
    add_parameter(layer, "shift", 1, out);
    if (shape.normalize != "batch") continue;
    for (const T start : {T{0}, T{1}}) {  // mean, variance
      running_statistics_.emplace_back(1, out);
      std::ranges::fill(running_statistics_.back().data, start);
    }
  }
  batch_statistics_ = running_statistics_;
  activations_.resize(static_cast<std::size_t>(shape.layers));
  draw_weights(seed);
}

template <class T>
void Network<T>::add_parameter(int layer, const char* name, std::int64_t rows, std::int64_t columns) {
  const std::string_view kind(name);
  const bool is_weight = kind != "bias" && kind != "scale" && kind != "shift";
  parameters_.push_back({fmt::format("layer{}.{}", layer, name), layer, is_weight, Matrix<T>(rows, columns)});
  std::ranges::fill(parameters_.back().value.data, kind == "scale" ? T{1} : T{0});
}

/// Uniform in +- sqrt(6 / (in + out)): the variance that keeps activations and gradients alike from layer to
/// layer.
template <class T>
void Network<T>::draw_weights(std::uint64_t seed) {
  for (std::size_t number = 0; number < parameters_.size(); ++number) {
    if (!parameters_[number].decays) continue;
    auto& value = parameters_[number].value;
    const double limit = std::sqrt(6.0 / static_cast<double>(value.rows + value.columns));
    const RandomStream stream{seed, Purpose::kInitialWeights, 0, 0, number, 0};
    for (std::size_t e = 0; e < value.data.size(); ++e)
      value.data[e] = static_cast<T>(limit * (2 * to_unit_double(random64(stream, e)) - 1));
  }
}

template <class T>
std::int64_t Network<T>::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& parameter : parameters_) count += static_cast<std::int64_t>(parameter.value.data.size());
  return count;
}

template <class T>
std::int64_t Network<T>::input_width(int layer) const {
  return layer == 1 ? shape_.inputs : shape_.hidden;
}

template <class T>
std::int64_t Network<T>::output_width(int layer) const {
  return layer == shape_.layers ? shape_.classes : shape_.hidden;
}

template <class T>
Matrix<T>& Network<T>::output_of(int layer) {
  return normalizes(layer) ? activations_of(layer).output : activations_of(layer).linear;
}

template <class T>
const Matrix<T>& Network<T>::input_of(int layer, const Matrix<T>& input) {
  if (layer > 1) return output_of(layer - 1);
  return shape_.input_dropout > 0 ? dropped_input_ : input;
}

/// Tensor number `place` of a layer.
template <class T>
const Matrix<T>& Network<T>::value(int layer, int place) const {
  return parameters_[first_parameter_[static_cast<std::size_t>(layer - 1)] + static_cast<std::size_t>(place)]
      .value;
}

template <class T>
bool Network<T>::aggregates_input(const Block& first_block) const {
  return shape_.input_dropout == 0 &&
         cheaper_order(first_block, input_width(1), output_width(1), false) == Order::kAggregateFirst;
}

template <class T>
const Matrix<T>& Network<T>::forward(const Cpu& cpu, std::span<const Block> blocks, const Matrix<T>& input,
                                     const Pass& pass, InputForm form) {
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
    dropout<T>(cpu, mask_of(pass, 0), shape_.input_dropout, input, dropped_input_);
  for (int layer = 1; layer <= shape_.layers; ++layer) {
    const Block& block = blocks[static_cast<std::size_t>(layer - 1)];
    const Order order = aggregated && layer == 1
                            ? Order::kAggregated
                            : cheaper_order(block, input_width(layer), output_width(layer), layer > 1);
    auto& kept = activations_of(layer);
    convolve(cpu, layer, block, order, input_of(layer, input), kept.product, kept.linear);
    if (layer < shape_.layers) activate(cpu, layer, pass);
  }
  return activations_of(shape_.layers).linear;
}

template <class T>
void Network<T>::convolve(const Cpu& cpu, int layer, const Block& block, Order order, const Matrix<T>& x,
                          Matrix<T>& product, Matrix<T>& z) const {
  if (shape_.kind == "sage") {
    const SageTensors<const Matrix<T>> weights{value(layer, kSelf), value(layer, kNeighbour),
                                               value(layer, kSageBias)};
    sage_forward<T>(cpu, block, order, x, weights, product, z);
  } else {
    const GcnTensors<const Matrix<T>> weights{value(layer, kWeight), value(layer, kGcnBias)};
    gcn_forward<T>(cpu, block, order, x, weights, product, z);
  }
}

/// H = dropout(relu(normalise(Z))).
template <class T>
void Network<T>::activate(const Cpu& cpu, int layer, const Pass& pass) {
  auto& kept = activations_of(layer);
  if (normalizes(layer)) {
    const Matrix<T>&scale = value(layer, scale_place(shape_)), &shift = value(layer, scale_place(shape_) + 1);
    if (shape_.normalize == "batch") {
      auto* statistics = &batch_statistics_[2 * static_cast<std::size_t>(layer - 1)];
      batch_norm_forward<T>(cpu, kept.linear, scale, shift, kept.output, kept.inverse_deviation,
                            statistics[0], statistics[1]);
    } else {
      layer_norm_forward<T>(cpu, kept.linear, scale, shift, kept.output, kept.inverse_deviation);
    }
  }
  relu_dropout<T>(cpu, mask_of(pass, layer), shape_.dropout, output_of(layer));
}

template <class T>
void Network<T>::backward(const Cpu& cpu, std::span<const Block> blocks, const Matrix<T>& input, const Pass&,
                          const Matrix<T>& dlogits, std::vector<Matrix<T>>& gradients) {
  gradients.resize(parameters_.size());
  for (std::size_t k = 0; k < parameters_.size(); ++k)
    gradients[k].resize(parameters_[k].value.rows, parameters_[k].value.columns);
  for (int layer = shape_.layers; layer >= 1; --layer) {
    if (layer < shape_.layers) backward_of_activation(cpu, layer, gradient_, gradients);
    const Matrix<T>& dz = layer == shape_.layers ? dlogits : gradient_;
    backward_of_convolution(cpu, layer, blocks[static_cast<std::size_t>(layer - 1)], input_of(layer, input),
                            dz, gradients, layer > 1 ? &next_gradient_ : nullptr);
    std::swap(gradient_, next_gradient_);
  }
}

/// gradient = dH becomes dZ.
template <class T>
void Network<T>::backward_of_activation(const Cpu& cpu, int layer, Matrix<T>& gradient,
                                        std::vector<Matrix<T>>& gradients) {
  const auto& kept = activations_of(layer);
  relu_dropout_backward<T>(cpu, shape_.dropout, output_of(layer), gradient);
  if (!normalizes(layer)) return;
  const Matrix<T>& scale = value(layer, scale_place(shape_));
  auto* to = &gradients[first_parameter_[static_cast<std::size_t>(layer - 1)] +
                        static_cast<std::size_t>(scale_place(shape_))];
  if (shape_.normalize == "batch")
    batch_norm_backward<T>(cpu, kept.linear, kept.inverse_deviation, scale, gradient, to[0], to[1]);
  else
    layer_norm_backward<T>(cpu, kept.linear, kept.inverse_deviation, scale, gradient, to[0], to[1]);
}

template <class T>
void Network<T>::backward_of_convolution(const Cpu& cpu, int layer, const Block& block, const Matrix<T>& x,
                                         const Matrix<T>& dz, std::vector<Matrix<T>>& gradients,
                                         Matrix<T>* dx) {
  const Order order = cheaper_order(block, input_width(layer), output_width(layer), layer > 1);
  if (dx != nullptr || order == Order::kMultiplyFirst) transpose(cpu, block, transposed_);
  Matrix<T>& product = activations_of(layer).product;
  auto* to = &gradients[first_parameter_[static_cast<std::size_t>(layer - 1)]];
  if (shape_.kind == "sage") {
    const SageTensors<const Matrix<T>> weights{value(layer, kSelf), value(layer, kNeighbour),
                                               value(layer, kSageBias)};
    sage_backward<T>(cpu, block, transposed_, order, x, weights, product, dz,
                     {to[kSelf], to[kNeighbour], to[kSageBias]}, dx);
  } else {
    const GcnTensors<const Matrix<T>> weights{value(layer, kWeight), value(layer, kGcnBias)};
    gcn_backward<T>(cpu, transposed_, order, x, weights, product, dz, {to[kWeight], to[kGcnBias]}, dx);
  }
}

template <class T>
void Network<T>::evaluate_layer(const Cpu& cpu, int layer, const Block& block, const Matrix<T>& input,
                                Matrix<T>& scratch, Matrix<T>& output) const {
  convolve(cpu, layer, block, evaluation_order(input_width(layer), output_width(layer)), input, scratch,
           output);
  if (layer == shape_.layers) return;
  if (normalizes(layer)) {
    const Matrix<T>&scale = value(layer, scale_place(shape_)), &shift = value(layer, scale_place(shape_) + 1);
    if (shape_.normalize == "batch") {
      const auto* statistics = &running_statistics_[2 * static_cast<std::size_t>(layer - 1)];
      batch_norm_evaluate<T>(cpu, statistics[0], statistics[1], scale, shift, output);
    } else {
      layer_norm_evaluate<T>(cpu, scale, shift, output);
    }
  }
  relu_dropout<T>(cpu, {}, 0.0, output);
}

template <class T>
void Network<T>::update_running_statistics(const std::vector<Matrix<T>>& mean_of_step) {
  ESPALIER_CHECK(mean_of_step.size() == running_statistics_.size(), "{} statistics, not {}",
                 mean_of_step.size(), running_statistics_.size());
  for (std::size_t k = 0; k < mean_of_step.size(); ++k)
    for (std::size_t j = 0; j < mean_of_step[k].data.size(); ++j) {
      T& running = running_statistics_[k].data[j];
      running = static_cast<T>((1 - kRunningMomentum) * static_cast<double>(running) +
                               kRunningMomentum * static_cast<double>(mean_of_step[k].data[j]));
    }
}

template class Network<float>;
template class Network<double>;

}  // namespace espalier
