// Rows of H[l] that are computed here and rows of it that history keeps, as one matrix, and back.
#pragma once

#include <cstdint>

#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

/// joined[c] = computed[place[c]], or cached[~place[c]] where that is negative; place
/// [joined.rows], memory of the space (sample/prune.hpp, PrunedLayer).
template <class T>
void join_rows(const Cpu&, ConstMatrixView<T> computed, ConstMatrixView<T> cached, const std::int64_t* place,
               MatrixView<T> joined);
template <class T>
void join_rows(const Cuda&, ConstMatrixView<T, Cuda> computed, ConstMatrixView<T, Cuda> cached,
               const std::int64_t* place, MatrixView<T, Cuda> joined);

/// picked[k] = from[rows[k]]; rows [picked.rows], memory of the space.
template <class T>
void pick_rows(const Cpu&, ConstMatrixView<T> from, const std::int64_t* rows, MatrixView<T> picked);
template <class T>
void pick_rows(const Cuda&, ConstMatrixView<T, Cuda> from, const std::int64_t* rows,
               MatrixView<T, Cuda> picked);

}  // namespace espalier
