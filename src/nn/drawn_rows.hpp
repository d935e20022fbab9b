// Gradients of rows that a draw has chosen among others, which pass on nothing.
#pragma once

#include <cstdint>

#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

/// rows(k, :) *= weight where drawn[positions[k]] is not 0; positions [rows.rows]; memory of the
/// space. The host does not wait.
template <class T>
void scale_drawn_rows(const Cpu&, const std::uint8_t* drawn, const std::int64_t* positions, double weight,
                      MatrixView<T> rows);
template <class T>
void scale_drawn_rows(const Cuda& cuda, const std::uint8_t* drawn, const std::int64_t* positions,
                      double weight, MatrixView<T, Cuda> rows);

}  // namespace espalier
