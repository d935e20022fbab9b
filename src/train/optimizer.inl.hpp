// What optimisers of all spaces share: the arithmetic of one element, and a step as a list of
// tensors to update.
#pragma once

#include <cmath>
#include <span>

#include "espalier/base/arrays.hpp"
#include "espalier/base/elementary.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/train/optimizer.hpp"

namespace espalier {

template <class T>
struct SgdStep {
  T rate, momentum, decay;
};

/// Adam's numbers of one step; the bias corrections are folded into rate and into the square root.
template <class T>
struct AdamStep {
  T beta1, beta2, epsilon, decay, rate, inverse_root_correction;
};

template <class T>
ESPALIER_HD inline void update_element(const SgdStep<T>& s, T gradient, T& velocity, T& weight) {
  velocity = s.momentum * velocity + (gradient + s.decay * weight);
  weight -= s.rate * velocity;
}

template <class T>
ESPALIER_HD inline void update_element(const AdamStep<T>& s, T gradient, T& first, T& second, T& weight) {
  const T g = gradient + s.decay * weight;
  first = s.beta1 * first + (T{1} - s.beta1) * g;
  second = s.beta2 * second + (T{1} - s.beta2) * (g * g);
  weight -= s.rate * first / (std::sqrt(second) * s.inverse_root_correction + s.epsilon);
}

/// A parameter with what updates it.
template <class T, class Step>
struct TensorUpdate {
  Step step;
  std::int64_t size;
  const T* gradient;
  T *first, *second;  ///< state; SGD has the first only
  T* weight;
};

template <class T>
ESPALIER_HD inline void update(const TensorUpdate<T, SgdStep<T>>& tensor, std::int64_t e) {
  update_element(tensor.step, tensor.gradient[e], tensor.first[e], tensor.weight[e]);
}
template <class T>
ESPALIER_HD inline void update(const TensorUpdate<T, AdamStep<T>>& tensor, std::int64_t e) {
  update_element(tensor.step, tensor.gradient[e], tensor.first[e], tensor.second[e], tensor.weight[e]);
}

/// Updates all the tensors. Step: SgdStep or AdamStep.
template <class T, class Step>
void update_tensors(const Cpu&, std::span<const TensorUpdate<T, Step>> updates);
template <class T, class Step>
void update_tensors(const Cuda&, std::span<const TensorUpdate<T, Step>> updates);

template <class T, class Space>
NamedMatrix<T, Space> zeros_like(const Space& space, const Parameter<T, Space>& parameter, const char* what) {
  NamedMatrix<T, Space> state{parameter.name + "/" + what,
                              Matrix<T, Space>(parameter.value.rows, parameter.value.columns)};
  fill_zero(space, state.value.data);
  return state;
}

template <class T, class Space>
Optimizer<T, Space>::Optimizer(const Space& space, const OptimizerOptions& options,
                               const std::vector<Parameter<T, Space>>& parameters)
    : options_(options) {
  for (const auto& parameter : parameters) {
    if (options.kind == "sgd") {
      state_.push_back(zeros_like(space, parameter, "velocity"));
    } else {
      state_.push_back(zeros_like(space, parameter, "first_moment"));
      state_.push_back(zeros_like(space, parameter, "second_moment"));
    }
  }
}

template <class T, class Space>
double Optimizer<T, Space>::decay_of(const Parameter<T, Space>& parameter) const {
  const bool decays = parameter.decays && (options_.weight_decay_on == "all" || parameter.layer == 1);
  return decays ? options_.weight_decay : 0.0;
}

template <class T, class Space>
void Optimizer<T, Space>::step(const Space& space, double learning_rate,
                               const std::vector<Matrix<T, Space>>& gradients,
                               std::vector<Parameter<T, Space>>& parameters) {
  ESPALIER_CHECK(gradients.size() == parameters.size(), "{} gradients for {} parameters", gradients.size(),
                 parameters.size());
  ++steps_;
  const double correction1 = 1 - power_of(options_.beta1, steps_);
  const double correction2 = 1 - power_of(options_.beta2, steps_);
  std::vector<TensorUpdate<T, SgdStep<T>>> by_sgd;
  std::vector<TensorUpdate<T, AdamStep<T>>> by_adam;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    auto& weight = parameters[k].value;
    ESPALIER_CHECK(gradients[k].data.size() == weight.data.size(), "gradient {} has the wrong shape",
                   parameters[k].name);
    const auto size = static_cast<std::int64_t>(weight.data.size());
    const T decay = static_cast<T>(decay_of(parameters[k]));
    const T* gradient = gradients[k].data.data();
    if (options_.kind == "sgd")
      by_sgd.push_back({{static_cast<T>(learning_rate), static_cast<T>(options_.momentum), decay},
                        size,
                        gradient,
                        state_[k].value.data.data(),
                        nullptr,
                        weight.data.data()});
    else
      by_adam.push_back(
          {{static_cast<T>(options_.beta1), static_cast<T>(options_.beta2), static_cast<T>(options_.epsilon),
            decay, static_cast<T>(learning_rate / correction1), static_cast<T>(1 / std::sqrt(correction2))},
           size,
           gradient,
           state_[2 * k].value.data.data(),
           state_[2 * k + 1].value.data.data(),
           weight.data.data()});
  }
  update_tensors<T, SgdStep<T>>(space, by_sgd);
  update_tensors<T, AdamStep<T>>(space, by_adam);
}

}  // namespace espalier
