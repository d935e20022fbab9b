// The largest of the gathered rows, element by element: m_i = max over the entries (i, j) of x_j.
//
// Law: as for spmm, a row depends on the rows it names only, for any number of threads. Of equal
// elements the first entry's counts. NaN stays.
#pragma once

#include <cstdint>

#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// B [rows, columns] without its values, X [columns, f], M [rows, f]; a row without entries gives
/// zeros. `winners` becomes [rows * f]: the entry that each element came from, counted from the
/// block's first, or -1. Fewer than 2^31 entries.
template <class T>
void gather_max(const Cpu&, const BlockView<Cpu>& block, ConstMatrixView<T> x, MatrixView<T> m,
                Buffer<std::int32_t>& winners);
template <class T>
void gather_max(const Cuda&, const BlockView<Cuda>& block, ConstMatrixView<T, Cuda> x, MatrixView<T, Cuda> m,
                DeviceArray<std::int32_t>& winners);

/// The gradient of X: dx_j = sum over the entries (i, j) that won of dm_i, in ascending entry.
/// `transposed` and `positions` are those of transpose(block), dX [columns, f].
template <class T>
void gather_max_backward(const Cpu&, const BlockView<Cpu>& transposed, const Buffer<std::int32_t>& positions,
                         const Buffer<std::int32_t>& winners, ConstMatrixView<T> dm, MatrixView<T> dx);
template <class T>
void gather_max_backward(const Cuda&, const BlockView<Cuda>& transposed,
                         const DeviceArray<std::int32_t>& positions, const DeviceArray<std::int32_t>& winners,
                         ConstMatrixView<T, Cuda> dm, MatrixView<T, Cuda> dx);

}  // namespace espalier
