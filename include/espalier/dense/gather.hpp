// Rows of matrices, picked by their numbers: how a message of rows is packed, and how rows come out
// of one.
//
// On a GPU a source may be pinned memory of the host: its rows then come over the bus, each once
// for each time that it is named.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "espalier/base/error.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/base/half.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

/// Row k of `to` = row ids[k] - first of `from`, rows of so many bytes, an even number. ids
/// [count], of int32_t or int64_t, memory of the space as all.
template <class Id>
void copy_rows(const Cpu&, const std::byte* from, std::int64_t row_bytes, const Id* ids, std::int64_t first,
               std::int64_t count, std::byte* to);
template <class Id>
void copy_rows(const Cuda&, const std::byte* from, std::int64_t row_bytes, const Id* ids, std::int64_t first,
               std::int64_t count, std::byte* to);

/// The same of numbers. to [rows, f].
template <class S, class Space, class Id>
void copy_rows(const Space& space, std::type_identity_t<ConstMatrixView<S, Space>> from, const Id* ids,
               std::int64_t first, std::type_identity_t<MatrixView<S, Space>> to) {
  ESPALIER_CHECK(to.columns == from.columns, "{} columns -> {}", from.columns, to.columns);
  copy_rows(space, reinterpret_cast<const std::byte*>(from.data), from.columns * std::int64_t{sizeof(S)}, ids,
            first, to.rows, reinterpret_cast<std::byte*>(to.data));
}

/// What rows of S are gathered as.
template <class S>
using Gathered = std::conditional_t<std::is_same_v<S, double>, double, float>;

/// to[k] = from[source[k]], or own[~source[k]] where that is negative, converted to float32; double
/// stays. S: float or double, on a GPU float, Half or BFloat16. from, own [any, f]; source [rows],
/// memory of the space; to [rows, f].
template <class S>
void gather_rows(const Cpu&, ConstMatrixView<S> from, ConstMatrixView<S> own, const std::int64_t* source,
                 MatrixView<Gathered<S>> to);
template <class S>
void gather_rows(const Cuda&, ConstMatrixView<S, Cuda> from, ConstMatrixView<S, Cuda> own,
                 const std::int64_t* source, MatrixView<Gathered<S>, Cuda> to);

}  // namespace espalier
