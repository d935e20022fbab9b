// GELU (Hendrycks and Gimpel 2016): x Phi(x), Phi the distribution function of the standard normal.
#pragma once

#include "espalier/base/elementary.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/nn/convolution.hpp"

namespace espalier {

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

}  // namespace espalier
