// What a network does (espalier/nn/network.hpp), for every space: it composes kernels, which have a
// version for each. Included by the one source file per space that instantiates it, network.cpp and
// network.cu.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <type_traits>
#include <utility>

#include "espalier/base/arrays.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/dense/device_matrix.hpp"
#include "espalier/dense/gather.hpp"
#include "espalier/dense/tensor_updates.hpp"
#include "espalier/nn/dropout.hpp"
#include "espalier/nn/network.hpp"
#include "espalier/nn/normalization.hpp"
#include "espalier/nn/own_rows.hpp"
#include "layers.inl.hpp"
#include "product_costs.hpp"
#include "row_sum.hpp"
#include "typed_input.hpp"

namespace espalier {

/// How far from 0 the numbers of a tensor begin that are drawn. Glorot's keeps activations and
/// gradients alike from layer to layer.
inline double limit_of(const TensorShape& shape) {
  if (shape.start == Start::kAngle) return std::numbers::pi;
  return std::sqrt(6.0 / static_cast<double>(shape.rows / shape.parts + shape.columns));
}

template <class T>
void draw_uniform(const KeyedStream& stream, double limit, Matrix<T>& values) {
  for (std::size_t e = 0; e < values.data.size(); ++e)
    values.data[e] = static_cast<T>(limit * (2 * to_unit_double(random64(stream, e)) - 1));
}

template <class T, class Space>
Network<T, Space>::Network(const Space& space, const NetworkShape& shape, std::uint64_t seed)
    : shape_(shape), activation_(activation_of(shape.activation)), jumping_(jumping_of(shape.jumping)) {
  check_shape(shape);
  shapes_ = network_layers(shape);
  for (const auto& made : shapes_) {
    const int number = made.layer.number;
    const bool of_graph = number <= shape.layers;
    for (const auto& tensor : made.tensors)
      add_parameter(
          space, seed, number,
          of_graph ? fmt::format("layer{}.{}", number, tensor.name) : fmt::format("output.{}", tensor.name),
          tensor);
    if (of_graph)
      layers_.push_back({make_layer<T, Space>(layer_kind_of(shape.kind), made.layer), {}, {}, {}, {}, {}});
    if (!made.normalizes || shape.normalize != "batch") continue;
    add_statistic(space, number, "mean", made.layer.out, T{0});
    add_statistic(space, number, "variance", made.layer.out, T{1});
  }
  if (!shape.types.empty())
    typed_input_ = std::make_shared<const TypedInput<T, Space>>(shape, parameters_.size());
  for (const auto& tensor : input_tensors(shape)) add_parameter(space, seed, 0, tensor.name, tensor.shape);
  for (const auto& tensor : shape.task_tensors)
    add_parameter(space, seed, stages() + 1, fmt::format("task.{}", tensor.name), tensor);
  if constexpr (std::is_same_v<Space, Cuda>) {
    auto together = like_parameters(/*apart=*/true);
    for (std::size_t k = 0; k < parameters_.size(); ++k) {
      copy(space, parameters_[k].value.data, together[k].data);
      parameters_[k].value = std::move(together[k]);
    }
  }
}

template <class T, class Space>
std::vector<Matrix<T, Space>> Network<T, Space>::like_parameters(bool apart) const {
  std::vector<MatrixPlace> places;
  for (const auto& parameter : parameters_)
    places.push_back({parameter.value.rows, parameter.value.columns, parameter.follows});
  return matrices_together<T, Space>(places, apart);
}

template <class T, class Space>
void Network<T, Space>::add_parameter(const Space& space, std::uint64_t seed, int layer,
                                      const std::string& name, const TensorShape& shape) {
  Matrix<T> values(shape.rows, shape.columns);
  if (shape.start == Start::kGlorot || shape.start == Start::kAngle)
    draw_uniform(RandomStream{.seed = seed, .purpose = Purpose::kInitialWeights, .layer = parameters_.size()},
                 limit_of(shape), values);
  else
    std::ranges::fill(values.data, shape.start == Start::kOne ? T{1} : T{0});
  parameters_.push_back({name, layer, shape.decays, placed(space, std::move(values)), shape.follows});
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
std::int64_t Network<T, Space>::input_rows(std::span<const TypeRun> runs, std::int64_t vertices,
                                           int table) const {
  return typed_input_ ? typed_input_->rows(runs, table) : vertices;
}

template <class T, class Space>
LayerInput<T, Space> Network<T, Space>::input_of(int layer, const InputRows<T, Space>& input) {
  if (layer > 1) return joined_ != nullptr ? kept_of(layer - 1).joined : output_of(layer - 1);
  if (reads_entries(shape_)) return {entries_, &transposed_entries_};
  return shape_.input_dropout > 0 ? dropped_input_ : typed_input_ ? projected_ : input.only();
}

/// Makes H[0].
template <class T, class Space>
void Network<T, Space>::begin_with(const Space& space, const BlockView<Space>& first_block,
                                   const InputRows<T, Space>& input, const Pass& pass) {
  const auto mask = mask_of(pass, Purpose::kDropout, 0);
  if (reads_entries(shape_)) {
    auto pairs = pairs_of(input.only(), 0);
    if (shape_.input_dropout > 0) {
      dropout_of_pairs<T>(space, mask, shape_.input_dropout, pairs, dropped_input_);
      pairs.pairs = dropped_input_;
    }
    return to_entries<T>(space, pairs, entries_);
  }
  if (typed_input_) typed_input_->forward(space, first_block.runs, input, parameters_, projected_);
  if (shape_.input_dropout > 0)
    dropout<T>(space, mask, shape_.input_dropout, typed_input_ ? projected_ : input.only(), dropped_input_);
}

template <class T, class Space>
void Network<T, Space>::widen(const Space& space, const InputRows<T, Space>& input,
                              std::vector<M>& widened) const {
  widened.resize(input.tables.size());
  for (std::size_t k = 0; k < input.tables.size(); ++k)
    if (widens(k)) widen_rows<T>(space, pairs_of(*input.tables[k], k), widened[k]);
}

/// The tables, with what widen() has made of them.
template <class T, class Space>
InputRows<T, Space> Network<T, Space>::in_matrices(const InputRows<T, Space>& input,
                                                   const std::vector<M>& widened) const {
  auto all = input;
  for (std::size_t k = 0; k < all.tables.size(); ++k)
    if (widens(k)) all.tables[k] = &widened[k];
  return all;
}

template <class T, class Space>
const Matrix<T, Space>& Network<T, Space>::forward(const Space& space,
                                                   std::span<const BlockView<Space>> blocks,
                                                   const InputRows<T, Space>& rows, const Pass& pass,
                                                   const JoinedRows<T, Space>* joined) {
  ESPALIER_CHECK(static_cast<int>(blocks.size()) == shape_.layers, "{} blocks for {} layers", blocks.size(),
                 shape_.layers);
  if (!typed_input_) {
    const auto pairs = shape_.pairs.empty() ? 0 : shape_.pairs[0];
    ESPALIER_CHECK(rows.only().columns == (pairs > 0 ? 2 * pairs : shape_.inputs),
                   "input has {} columns, not {}", rows.only().columns, shape_.inputs);
  }
  ESPALIER_CHECK(joined == nullptr || (!jumps() && running_statistics_.empty()),
                 "joined rows and {} statistics", running_statistics_.size());
  joined_ = joined;
  widen(space, rows, widened_);
  const auto input = in_matrices(rows, widened_);
  begin_with(space, blocks[0], input, pass);
  for (int layer = 1; layer <= shape_.layers; ++layer) {
    auto& kept = kept_of(layer);
    const auto x = input_of(layer, input);
    kept.layer->forward(space, blocks[layer - 1], x, tensors_of(layer),
                        mask_of(pass, Purpose::kAttention, layer), kept.linear);
    add_input(space, layer, blocks[layer - 1].rows, x, kept.linear);
    if (shape_of(layer).activates) follow(space, layer, pass);
    if (joined != nullptr && layer < shape_.layers) join(space, layer, pass);
  }
  if (!jumps()) return kept_of(shape_.layers).linear;
  jump(space);
  return logits_;
}

/// Z += the destinations' own rows of the layer's input, or their product with W_residual.
template <class T, class Space>
void Network<T, Space>::add_input(const Space& space, int layer, std::int64_t rows,
                                  const LayerInput<T, Space>& x, M& z) const {
  const auto& made = shape_of(layer);
  if (!made.adds_input) return;
  const auto own = x.first_rows(rows);
  if (made.projects_input)
    multiply<T>(space, own, tensors_of(layer)[made.own_tensors].value, z, Update::kAccumulate);
  else
    add_rows<T>(space, own, z);
}

/// H = dropout(f(normalise(Z))).
template <class T, class Space>
void Network<T, Space>::follow(const Space& space, int layer, const Pass& pass) {
  auto& kept = kept_of(layer);
  if (shape_of(layer).normalizes) {
    const auto affine = tensors_of(layer).last(2);
    const M &scale = affine[0].value, &shift = affine[1].value;
    if (shape_.normalize == "batch") {
      auto* statistics = &batch_statistics_[2 * static_cast<std::size_t>(layer - 1)];
      batch_norm_forward<T>(space, kept.linear, scale, shift, kept.output, kept.inverse_deviation,
                            statistics[0], statistics[1]);
    } else {
      layer_norm_forward<T>(space, kept.linear, scale, shift, kept.output, kept.inverse_deviation);
    }
  }
  activate<T>(space, activation_, mask_of(pass, Purpose::kDropout, layer), dropout_after(), output_of(layer));
}

/// What layer + 1 reads: rows of H that were computed and rows that were given, then dropout.
template <class T, class Space>
void Network<T, Space>::join(const Space& space, int layer, const Pass& pass) {
  auto& kept = kept_of(layer);
  const auto& rows = joined_->layers[static_cast<std::size_t>(layer)];
  const M &computed = output_of(layer), &given = *rows.given;
  ESPALIER_CHECK(computed.rows == std::ssize(rows.computed), "{} rows for {} computed", computed.rows,
                 rows.computed.size());
  kept.joined.resize(std::ssize(rows.place), computed.columns);
  gather_rows<T>(space, computed, given, rows.place.data(), kept.joined);
  if (shape_.dropout > 0)
    dropout<T>(space, mask_of(pass, Purpose::kDropout, layer), shape_.dropout, kept.joined, kept.joined);
}

/// gradient_ of what layer + 1 read becomes that of the rows which were computed, those that a draw
/// has chosen with their weight: needed_gradients() stay without. After ReLU what
/// was read is positive exactly where a gradient goes on: no mask need be drawn again.
template <class T, class Space>
void Network<T, Space>::backward_of_join(const Space& space, int layer, const Pass& pass) {
  auto& all = kept_of(layer).joined_gradient;
  const auto& rows = joined_->layers[static_cast<std::size_t>(layer)];
  if (shape_of(layer).activates && activation_ == Activation::kRelu)
    relu_dropout_backward<T>(space, shape_.dropout, kept_of(layer).joined, gradient_);
  else if (shape_.dropout > 0)
    dropout<T>(space, mask_of(pass, Purpose::kDropout, layer), shape_.dropout, gradient_, gradient_);
  std::swap(all, gradient_);
  gradient_.resize(std::ssize(rows.computed), all.columns);
  copy_rows<T>(space, all, rows.computed.data(), 0, gradient_);
  if (rows.drawn != nullptr)
    scale_drawn_rows<T>(space, rows.drawn, rows.positions.data(), joined_->weight, gradient_);
}

// ---- jumping knowledge ----

template <class T, class Space>
void Network<T, Space>::jump(const Space& space) {
  const std::int64_t seeds = output_of(shape_.layers).rows;
  jumped_.resize(seeds, input_width(stages()));
  for (int layer = 1; layer <= shape_.layers; ++layer)
    take_up_layer(space, layer, MatrixView<T, Space>(output_of(layer)).first_rows(seeds), winners_, jumped_);
  evaluate_output(space, jumped_, logits_);
}

template <class T, class Space>
void Network<T, Space>::take_up_layer(const Space& space, int layer, ConstMatrixView<T, Space> h,
                                      Array<Space, std::int32_t>& winners,
                                      MatrixView<T, Space> jumped) const {
  if (jumping_ == Jumping::kConcat)
    place_columns<T>(space, h, (layer - 1) * shape_.hidden, jumped);
  else
    take_larger<T>(space, h, layer, jumped, winners);
}

template <class T, class Space>
void Network<T, Space>::evaluate_output(const Space& space, ConstMatrixView<T, Space> jumped,
                                        M& logits) const {
  const auto tensors = tensors_of(shape_.layers + 1);
  logits.resize(jumped.rows, shape_.classes);
  gemm_plus_row<T>(space, tensors[1].value, jumped, tensors[0].value, logits);
}

template <class T, class Space>
void Network<T, Space>::backward_of_jump(const Space& space, const M& dlogits, std::vector<M>& gradients) {
  const int output = shape_.layers + 1;
  const auto to = gradients_of(output, gradients);
  gemm_tn<T>(space, jumped_, dlogits, to[0]);
  sum_rows<T>(space, dlogits, to[1]);
  jumped_gradient_.resize(jumped_.rows, jumped_.columns);
  gemm_nt<T>(space, dlogits, tensors_of(output)[0].value, jumped_gradient_);
}

/// gradient = dH[layer] gets what comes by way of J, in the seeds' rows.
template <class T, class Space>
void Network<T, Space>::add_gradient_of_jump(const Space& space, int layer, M& gradient) const {
  const auto of_seeds = MatrixView<T, Space>(gradient).first_rows(jumped_.rows);
  if (jumping_ == Jumping::kConcat)
    add_columns<T>(space, jumped_gradient_, (layer - 1) * shape_.hidden, of_seeds);
  else
    add_where_larger<T>(space, jumped_gradient_, layer, winners_, of_seeds);
}

// ---- backward ----

template <class T, class Space>
void Network<T, Space>::backward(const Space& space, std::span<const BlockView<Space>> blocks,
                                 const InputRows<T, Space>& rows, const Pass& pass, const M& dlogits,
                                 std::vector<M>& gradients, const InputGradients<T, Space>& dinput,
                                 const std::function<void(std::size_t)>& has_groups) {
  const auto input = in_matrices(rows, widened_);
  if (gradients.empty()) gradients = make_gradients();
  for (std::size_t k = 0; k < parameters_.size(); ++k)
    gradients[k].resize(parameters_[k].value.rows, parameters_[k].value.columns);
  std::size_t groups = 0;
  const auto has_another_group = [&] {
    ++groups;
    if (has_groups) has_groups(groups);
  };
  has_another_group();
  if (jumps()) {
    backward_of_jump(space, dlogits, gradients);
    has_another_group();
    gradient_.resize(jumped_.rows, shape_.hidden);
    fill_zero(space, gradient_.data);
  }
  for (int layer = shape_.layers; layer >= 1; --layer) {
    if (jumps()) add_gradient_of_jump(space, layer, gradient_);
    if (joined_ != nullptr && layer < shape_.layers) backward_of_join(space, layer, pass);
    const bool activates = shape_of(layer).activates;
    if (activates)
      backward_of_activation(space, layer, pass, gradient_, gradients);
    else if (shape_of(layer).own_tensors > 0)
      sum_rows<T>(space, dlogits, bias_of(layer, gradients));
    const M& dz = activates ? gradient_ : dlogits;
    const auto x = input_of(layer, input);
    M* const dx = layer > 1 ? &next_gradient_ : typed_input_ ? &dprojected_ : dinput.only();
    kept_of(layer).layer->backward(space, blocks[layer - 1], x, tensors_of(layer), dz, scratch_,
                                   gradients_of(layer, gradients), dx);
    backward_of_input(space, layer, blocks[layer - 1].rows, x, dz, gradients, dx);
    std::swap(gradient_, next_gradient_);
    has_another_group();
  }
  backward_of_begin(space, blocks[0], input, pass, gradients, dinput);
  has_another_group();
}

template <class T, class Space>
void Network<T, Space>::backward_of_begin(const Space& space, const BlockView<Space>& first_block,
                                          const InputRows<T, Space>& input, const Pass& pass,
                                          std::vector<M>& gradients, const InputGradients<T, Space>& dinput) {
  M* const dh = typed_input_ ? &dprojected_ : dinput.only();
  if (dh == nullptr) return;
  if (shape_.input_dropout > 0)
    dropout<T>(space, mask_of(pass, Purpose::kDropout, 0), shape_.input_dropout, *dh, *dh);
  if (typed_input_)
    typed_input_->backward(space, first_block.runs, input, parameters_, dprojected_, gradients, dinput,
                           next_gradient_);
}

/// Of add_input.
template <class T, class Space>
void Network<T, Space>::backward_of_input(const Space& space, int layer, std::int64_t rows,
                                          const LayerInput<T, Space>& x, const M& dz,
                                          std::vector<M>& gradients, M* dx) const {
  const auto& made = shape_of(layer);
  if (!made.adds_input) return;
  if (made.projects_input)
    multiply_transposed<T>(space, x.first_rows(rows), dz, gradients_of(layer, gradients)[made.own_tensors]);
  if (dx == nullptr) return;
  const auto own = MatrixView<T, Space>(*dx).first_rows(rows);
  if (made.projects_input)
    gemm_nt<T>(space, dz, tensors_of(layer)[made.own_tensors].value, own, Update::kAccumulate);
  else
    add_rows<T>(space, dz, own);
}

/// gradient = dH becomes dZ; its sum over the rows is the bias's.
template <class T, class Space>
void Network<T, Space>::backward_of_activation(const Space& space, int layer, const Pass& pass, M& gradient,
                                               std::vector<M>& gradients) {
  const auto& kept = kept_of(layer);
  const bool normalizes = shape_of(layer).normalizes;
  M& bias = bias_of(layer, gradients);
  activate_backward<T>(space, activation_, mask_of(pass, Purpose::kDropout, layer), dropout_after(),
                       output_of(layer), gradient, normalizes ? nullptr : &bias);
  if (!normalizes) return;
  const M& scale = tensors_of(layer).last(2)[0].value;
  const auto to = gradients_of(layer, gradients).last(2);
  if (shape_.normalize == "batch")
    batch_norm_backward<T>(space, kept.linear, kept.inverse_deviation, scale, gradient, to[0], to[1]);
  else
    layer_norm_backward<T>(space, kept.linear, kept.inverse_deviation, scale, gradient, to[0], to[1]);
  sum_rows<T>(space, gradient, bias);
}

/// H[0] of an evaluation.
template <class T, class Space>
LayerInput<T, Space> Network<T, Space>::first_input(const Space& space, const BlockView<Space>& block,
                                                    const InputRows<T, Space>& rows,
                                                    LayerScratch<T, Space>& scratch) const {
  if (reads_entries(shape_)) {
    to_entries<T>(space, pairs_of(rows.only(), 0), scratch.entries);
    return {scratch.entries, nullptr};
  }
  widen(space, rows, scratch.widened);
  const auto input = in_matrices(rows, scratch.widened);
  if (!typed_input_) return input.only();
  typed_input_->forward(space, block.runs, input, parameters_, scratch.input);
  return scratch.input;
}

template <class T, class Space>
void Network<T, Space>::evaluate_layer(const Space& space, int layer, const BlockView<Space>& block,
                                       const InputRows<T, Space>& rows, LayerScratch<T, Space>& scratch,
                                       M& output) const {
  const auto x = layer == 1 ? first_input(space, block, rows, scratch) : LayerInput<T, Space>(rows.only());
  layers_[layer - 1].layer->evaluate(space, block, x, tensors_of(layer), scratch, output);
  add_input(space, layer, block.rows, x, output);
  const auto& made = shape_of(layer);
  if (!made.activates) return;
  if (made.normalizes) {
    const auto affine = tensors_of(layer).last(2);
    const M &scale = affine[0].value, &shift = affine[1].value;
    if (shape_.normalize == "batch") {
      const auto* statistics = &running_statistics_[2 * static_cast<std::size_t>(layer - 1)];
      batch_norm_evaluate<T>(space, statistics[0], statistics[1], scale, shift, output);
    } else {
      layer_norm_evaluate<T>(space, scale, shift, output);
    }
  }
  activate<T>(space, activation_, {}, 0.0, output);
}

// Divisors are times a power of two, so that products do not leave float32.
template <class T, class Space>
void Network<T, Space>::weigh_statistics(const Space& space, std::vector<Matrix<T, Space>>& weighted) const {
  const auto count = batch_statistics_.size();
  weighted.resize(count + 1);
  weighted.back().resize(1, static_cast<std::int64_t>(count));
  for (std::size_t k = 0; k < count; ++k) {
    const auto rows = layers_[k / 2].linear.rows, divisor = k % 2 == 0 ? rows : rows - 1;
    weigh(space, 0x1p-24 * static_cast<double>(std::max<std::int64_t>(divisor, 0)), batch_statistics_[k],
          weighted[k], weighted.back(), static_cast<std::int64_t>(k));
  }
}

template <class T, class Space>
void Network<T, Space>::update_running_statistics(const Space& space,
                                                  const std::vector<Matrix<T, Space>>& sums_of_step) {
  const auto count = running_statistics_.size();
  ESPALIER_CHECK(sums_of_step.size() == count + 1, "{} sums of {} statistics", sums_of_step.size(), count);
  constexpr double kMomentum = 0.1;
  for (std::size_t k = 0; k < count; ++k)
    blend_mean(space, kMomentum, sums_of_step[k], sums_of_step.back(), static_cast<std::int64_t>(k),
               running_statistics_[k]);
}

}  // namespace espalier
