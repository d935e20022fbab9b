// Square matrices of relations and heads, one under the other, each times a learned number and a
// factor that all share: ~W_p = factor mu_p W_p.
#pragma once

#include "espalier/base/execution.hpp"
#include "espalier/nn/convolution.hpp"

namespace espalier {

/// scaled [P * width, width], resized, of w of that shape and P numbers mu.
template <class T, class Space>
void scale_matrices(const Space&, const MatrixOn<Space, T>& w, const MatrixOn<Space, T>& mu, T factor,
                    MatrixOn<Space, T>& scaled);

/// dscaled becomes dW; dmu_p = factor times the sum of W_p's elements times those of dscaled_p.
template <class T, class Space>
void scale_matrices_backward(const Space&, const MatrixOn<Space, T>& w, const MatrixOn<Space, T>& mu,
                             T factor, MatrixOn<Space, T>& dscaled, MatrixOn<Space, T>& dmu);

}  // namespace espalier
