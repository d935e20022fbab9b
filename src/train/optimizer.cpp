#include "espalier/train/optimizer.hpp"

#include <algorithm>
#include <cmath>

#include "espalier/base/error.hpp"

namespace espalier {
namespace {

template <class T>
NamedMatrix<T> zeros_like(const Parameter<T>& parameter, const char* what) {
  NamedMatrix<T> state{parameter.name + "/" + what, Matrix<T>(parameter.value.rows, parameter.value.columns)};
  std::ranges::fill(state.value.data, T{0});
  return state;
}

template <class T>
void sgd_update(const Cpu& cpu, T rate, T momentum, T decay, const Matrix<T>& gradient, Matrix<T>& velocity,
                Matrix<T>& weight) {
  const auto size = static_cast<std::int64_t>(weight.data.size());
  T *w = weight.data.data(), *v = velocity.data.data();
  const T* g = gradient.data.data();
#pragma omp parallel for simd num_threads(cpu.threads) schedule(static) if (parallel : size > 65536)
  for (std::int64_t e = 0; e < size; ++e) {
    v[e] = momentum * v[e] + (g[e] + decay * w[e]);
    w[e] -= rate * v[e];
  }
}

/// Adam's numbers of one step; the bias corrections are folded into rate and into the square root.
template <class T>
struct AdamStep {
  T beta1, beta2, epsilon, decay, rate, inverse_root_correction;
};

template <class T>
void adam_update(const Cpu& cpu, const AdamStep<T>& s, const Matrix<T>& gradient, Matrix<T>& first,
                 Matrix<T>& second, Matrix<T>& weight) {
  const auto size = static_cast<std::int64_t>(weight.data.size());
  T *w = weight.data.data(), *m = first.data.data(), *v = second.data.data();
  const T* gradients = gradient.data.data();
#pragma omp parallel for simd num_threads(cpu.threads) schedule(static) if (parallel : size > 65536)
  for (std::int64_t e = 0; e < size; ++e) {
    const T g = gradients[e] + s.decay * w[e];
    m[e] = s.beta1 * m[e] + (T{1} - s.beta1) * g;
    v[e] = s.beta2 * v[e] + (T{1} - s.beta2) * (g * g);
    w[e] -= s.rate * m[e] / (std::sqrt(v[e]) * s.inverse_root_correction + s.epsilon);
  }
}

}  // namespace

template <class T>
Optimizer<T>::Optimizer(const OptimizerOptions& options, const std::vector<Parameter<T>>& parameters)
    : options_(options) {
  if (options.kind != "adam" && options.kind != "sgd")
    usage_error("optimizer \"{}\" is not one of adam, sgd", options.kind);
  if (options.weight_decay_on != "all" && options.weight_decay_on != "first")
    usage_error("weight_decay_on \"{}\" is not one of all, first", options.weight_decay_on);
  for (const auto& parameter : parameters) {
    if (options.kind == "sgd") {
      state_.push_back(zeros_like(parameter, "velocity"));
    } else {
      state_.push_back(zeros_like(parameter, "first_moment"));
      state_.push_back(zeros_like(parameter, "second_moment"));
    }
  }
}

template <class T>
double Optimizer<T>::decay_of(const Parameter<T>& parameter) const {
  const bool decays = parameter.decays && (options_.weight_decay_on == "all" || parameter.layer == 1);
  return decays ? options_.weight_decay : 0.0;
}

template <class T>
void Optimizer<T>::step(const Cpu& cpu, double learning_rate, const std::vector<Matrix<T>>& gradients,
                        std::vector<Parameter<T>>& parameters) {
  ESPALIER_CHECK(gradients.size() == parameters.size(), "{} gradients for {} parameters", gradients.size(),
                 parameters.size());
  ++steps_;
  const double correction1 = 1 - std::pow(options_.beta1, static_cast<double>(steps_));
  const double correction2 = 1 - std::pow(options_.beta2, static_cast<double>(steps_));
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    auto& weight = parameters[k].value;
    ESPALIER_CHECK(gradients[k].data.size() == weight.data.size(), "gradient {} has the wrong shape",
                   parameters[k].name);
    const T decay = static_cast<T>(decay_of(parameters[k]));
    if (options_.kind == "sgd") {
      sgd_update(cpu, static_cast<T>(learning_rate), static_cast<T>(options_.momentum), decay, gradients[k],
                 state_[k].value, weight);
    } else {
      const AdamStep<T> numbers{static_cast<T>(options_.beta1),
                                static_cast<T>(options_.beta2),
                                static_cast<T>(options_.epsilon),
                                decay,
                                static_cast<T>(learning_rate / correction1),
                                static_cast<T>(1 / std::sqrt(correction2))};
      adam_update(cpu, numbers, gradients[k], state_[2 * k].value, state_[2 * k + 1].value, weight);
    }
  }
}

template class Optimizer<float>;
template class Optimizer<double>;

}  // namespace espalier
