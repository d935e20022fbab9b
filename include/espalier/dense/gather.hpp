// Rows of a matrix, picked by their ids, on a GPU: what the CPU does with a loop of copies.
//
// The source may be pinned memory of the host: the rows then come over the bus, each once for each id.
#pragma once

#include <cstdint>
#include <span>

#include "espalier/base/execution.hpp"
#include "espalier/base/half.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

/// to[i] = from[ids[i]], converted to float32. from [any, f] of float, Half or BFloat16; ids [rows] on the device; to
/// [rows, f].
template <class S>
void gather_rows(const Cuda&, ConstMatrixView<S, Cuda> from, std::span<const std::int64_t> ids,
                 MatrixView<float, Cuda> to);

/// to[i] = from[ids[i]] in the type they have, as messages are packed. from [any, f], ids [rows] on the device, to
/// [rows, f].
template <class S>
void copy_rows(const Cuda&, ConstMatrixView<S, Cuda> from, std::span<const std::int64_t> ids,
               MatrixView<S, Cuda> to);

}  // namespace espalier
