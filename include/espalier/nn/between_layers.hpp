// What stands between two layers: a nonlinear function, element by element, and dropout; and how
// the outputs of all layers become one (jumping knowledge).
//
//     relu(x) = max(x, 0)          elu(x) = x for x > 0, exp(x) - 1 else (Clevert et al. 2016)
//
// Both gradients follow from the results: no copy of x is kept.
#pragma once

#include <cstdint>
#include <string_view>

#include "espalier/base/elementary.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/nn/dropout.hpp"
#include "espalier/nn/views.hpp"

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
void activate(const Space& space, Activation f, const KeyedStream& mask, double rate, Matrix<T, Space>& h) {
  if (f == Activation::kRelu) return relu_dropout<T>(space, mask, rate, h);
  elu<T>(space, h);
  if (rate > 0) dropout<T>(space, mask, rate, h, h);
}

/// gradient = dH becomes what stands before f, where h is what activate returned, and `sums`,
/// unless it is null, its sums over the rows.
template <class T, class Space>
void activate_backward(const Space& space, Activation f, const KeyedStream& mask, double rate,
                       const Matrix<T, Space>& h, Matrix<T, Space>& gradient, Matrix<T, Space>* sums) {
  if (f == Activation::kRelu) return relu_dropout_backward<T>(space, rate, h, gradient, sums);
  if (rate > 0) dropout<T>(space, mask, rate, gradient, gradient);
  elu_backward<T>(space, h, rate > 0 ? keep_scale<T>(rate) : T{1}, gradient, sums);
}

// GELU (Hendrycks and Gimpel 2016): x Phi(x), Phi the distribution function of the standard normal.

/// Off by less than 1.3e-7 in float32, 1e-15 in double. The polynomial interpolates exp(z^2)
/// erfc(z) at Chebyshev points of t = (z - 2) / (z + 2), the substitution of Shepherd and
/// Laframboise (Mathematics of Computation 36, 1981).
template <class T>
ESPALIER_HD inline T normal_distribution(T x) {
  const T size = x < T{0} ? -x : x,
          z = static_cast<T>(0.70710678118654752440) * (size < T{40} ? size : T{40});
  const T scaled = horner(
      (z - T{2}) / (z + T{2}), static_cast<T>(0.255395676310505747), -0.427185847413960544,
      0.241658194242465278, -0.0789785810155067461, 0.00373289240441255479, 0.00699746173222069247,
      -0.000847143253668980896, -0.000981976927424406285, 0.0000435556581928997321, 0.00017436039415600895,
      0.0000275246889008420005, -0.0000275761971367883117, -0.0000139606117006749739, 1.37961083596983211e-6,
      3.74663073867239447e-6, 1.22444567898383779e-6, -4.05260764611119219e-7, -5.4974115426734931e-7,
      -1.52118771579438643e-7, 1.14395198784529046e-7, 9.07726271095148736e-8, -8.69642470447537868e-9,
      -2.16736548788200224e-8, -5.86483056751238469e-10, 2.21071762285154279e-9);
  const T beyond = static_cast<T>(0.5) * exp_of_nonpositive(static_cast<T>(-0.5) * x * x) * scaled;
  return x < T{0} ? beyond : T{1} - beyond;
}
template <class T>
ESPALIER_HD inline T normal_density(T x) {
  return static_cast<T>(0.39894228040143267794) * exp_of_nonpositive(static_cast<T>(-0.5) * x * x);
}

/// y = gelu(x), resized.
template <class T, class Space>
void gelu(const Space&, const MatrixOn<Space, T>& x, MatrixOn<Space, T>& y);

/// dy becomes dx.
template <class T, class Space>
void gelu_backward(const Space&, const MatrixOn<Space, T>& x, MatrixOn<Space, T>& dy);

// Jumping knowledge (Xu et al., Representation learning on graphs with jumping knowledge networks,
// ICML 2018): what is learnt from is the results of all layers, side by side or element by element
// the largest.
//
//     J = [H[1] .. H[L]]  or  J = max over l of H[l]     rows of the seeds, the first of each H[l]

enum class Jumping { kNone, kConcat, kMax };

/// Throws UserError(kUsage) for a name that is none.
inline Jumping jumping_of(std::string_view name) {
  if (name == "none") return Jumping::kNone;
  if (name == "concat") return Jumping::kConcat;
  if (name == "max") return Jumping::kMax;
  usage_error("jumping \"{}\" is not one of none, concat, max", name);
}

/// h [rows, f] becomes J[:, at .. at + f].
template <class T, class Space>
void place_columns(const Space&, ConstViewOn<Space, T> h, std::int64_t at, ViewOn<Space, T> j);

/// gradient [rows, f] += dJ[:, at .. at + f].
template <class T, class Space>
void add_columns(const Space&, ConstViewOn<Space, T> dj, std::int64_t at, ViewOn<Space, T> gradient);

/// J = max(J, h), and winners [rows * f] = `number` where h is larger; with number 1 J = h. Of
/// equal elements the first layer's counts.
template <class T, class Space>
void take_larger(const Space&, ConstViewOn<Space, T> h, int number, ViewOn<Space, T> j,
                 Array<Space, std::int32_t>& winners);

/// gradient += dJ where layer `number` has won.
template <class T, class Space>
void add_where_larger(const Space&, ConstViewOn<Space, T> dj, int number,
                      const Array<Space, std::int32_t>& winners, ViewOn<Space, T> gradient);

}  // namespace espalier
