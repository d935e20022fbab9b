// What layers add to a result of a vertex's own vector, by a factor (GIN) or by a gate (HGT).
#pragma once

#include "espalier/base/elementary.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/nn/views.hpp"

namespace espalier {

/// y += x, both [rows, f].
template <class T, class Space>
void add_rows(const Space&, ConstViewOn<Space, T> x, ViewOn<Space, T> y);

/// y += (1 + eps) x, eps [1, 1] in memory of the space.
template <class T, class Space>
void add_own_rows(const Space&, const MatrixOn<Space, T>& eps, ConstViewOn<Space, T> x, ViewOn<Space, T> y);

/// sum [1, 1] = the sum of x_ij y_ij, in double, in one order: the gradient of eps.
template <class T, class Space>
void product_of_own_rows(const Space&, ConstViewOn<Space, T> x, ConstViewOn<Space, T> y,
                         MatrixOn<Space, T>& sum);

// A mean of two rows, weighed by a gate that is learned: z_i = g y_i + (1 - g) x_i, g = sigmoid(s).

template <class T>
ESPALIER_HD inline T gate_of(T s) {
  const T e = exp_of_nonpositive(s < T{0} ? s : -s);
  return (s < T{0} ? e : T{1}) / (T{1} + e);
}

/// z += g y + (1 - g) x, all of one shape; the gate's s is row `gate` of skip [gates, 1].
template <class T, class Space>
void add_mixed_rows(const Space&, const MatrixOn<Space, T>& skip, std::int64_t gate, ConstViewOn<Space, T> x,
                    ConstViewOn<Space, T> y, ViewOn<Space, T> z);

/// dy = g dz, and row `gate` of dskip += the sum of g (1 - g) (y - x) . dz, added in double.
template <class T, class Space>
void mixed_rows_backward(const Space&, const MatrixOn<Space, T>& skip, std::int64_t gate,
                         ConstViewOn<Space, T> x, ConstViewOn<Space, T> y, ConstViewOn<Space, T> dz,
                         ViewOn<Space, T> dy, MatrixOn<Space, T>& dskip);

/// dx += (1 - g) dz.
template <class T, class Space>
void add_past_gate(const Space&, const MatrixOn<Space, T>& skip, std::int64_t gate, ConstViewOn<Space, T> dz,
                   ViewOn<Space, T> dx);

}  // namespace espalier
