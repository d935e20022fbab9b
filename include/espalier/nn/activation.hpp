// What stands between two layers: a nonlinear function, element by element, and dropout.
//
//     relu(x) = max(x, 0)          elu(x) = x for x > 0, exp(x) - 1 else (Clevert et al. 2016)
//
// Both gradients follow from the results: no copy of x is kept.
#pragma once

#include <string_view>

#include "espalier/base/error.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/nn/convolution.hpp"
#include "espalier/nn/dropout.hpp"

namespace espalier {

enum class Activation { kRelu, kElu };

/// Throws UserError(kUsage) for a name that is none.
inline Activation activation_of(std::string_view name) {
  if (name == "relu") return Activation::kRelu;
  if (name == "elu") return Activation::kElu;
  usage_error("activation \"{}\" is not one of relu, elu", name);
}

/// h = elu(h).
template <class T, class Space>
void elu(const Space&, ViewOn<Space, T> h);

/// gradient *= elu'(x), where h is elu(x) times `scale`, or 0 where it was dropped: there the
/// gradient is 0 already. `sums`: as relu_dropout_backward's.
template <class T, class Space>
void elu_backward(const Space&, ConstViewOn<Space, T> h, T scale, ViewOn<Space, T> gradient,
                  MatrixOn<Space, T>* sums = nullptr);

/// h = dropout(f(h)).
template <class T, class Space>
void activate(const Space& space, Activation f, const RandomStream& mask, double rate, Matrix<T, Space>& h) {
  if (f == Activation::kRelu) return relu_dropout<T>(space, mask, rate, h);
  elu<T>(space, h);
  if (rate > 0) dropout<T>(space, mask, rate, h, h);
}

/// gradient = dH becomes what stands before f, where h is what activate returned, and `sums`,
/// unless it is null, its sums over the rows.
template <class T, class Space>
void activate_backward(const Space& space, Activation f, const RandomStream& mask, double rate,
                       const Matrix<T, Space>& h, Matrix<T, Space>& gradient, Matrix<T, Space>* sums) {
  if (f == Activation::kRelu) return relu_dropout_backward<T>(space, rate, h, gradient, sums);
  if (rate > 0) dropout<T>(space, mask, rate, gradient, gradient);
  elu_backward<T>(space, h, rate > 0 ? keep_scale<T>(rate) : T{1}, gradient, sums);
}

}  // namespace espalier
