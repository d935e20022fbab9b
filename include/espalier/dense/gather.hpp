// Rows of matrices, picked by their numbers: how a message of rows is packed, and how rows come out
// of one.
//
// On a GPU a source may be pinned memory of the host: its rows then come over the bus, each once
// for each time that it is named.
#pragma once

#include <cstdint>
#include <type_traits>

#include "espalier/base/execution.hpp"
#include "espalier/base/half.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

/// Two bytes of a row that is moved as it is (feature/quantised_rows.hpp); no number.
struct QuantisedWord {
  std::uint16_t bits = 0;
};

/// to[k] = from[ids[k] - first], in the type they have. from [any, f] of float, Half or
/// QuantisedWord, on the CPU also double, on a GPU also BFloat16; ids [rows], of int32_t or
/// int64_t, memory of the space; to [rows, f].
template <class S, class Id>
void copy_rows(const Cpu&, ConstMatrixView<S> from, const Id* ids, std::int64_t first, MatrixView<S> to);
template <class S, class Id>
void copy_rows(const Cuda&, ConstMatrixView<S, Cuda> from, const Id* ids, std::int64_t first,
               MatrixView<S, Cuda> to);

/// What rows of S are gathered as.
template <class S>
using Gathered = std::conditional_t<std::is_same_v<S, double>, double, float>;

/// to[k] = from[source[k]], or own[~source[k]] where that is negative, converted to float32; double
/// stays. from, own [any, f] of the same types; source [rows], memory of the space; to [rows, f].
template <class S>
void gather_rows(const Cpu&, ConstMatrixView<S> from, ConstMatrixView<S> own, const std::int64_t* source,
                 MatrixView<Gathered<S>> to);
template <class S>
void gather_rows(const Cuda&, ConstMatrixView<S, Cuda> from, ConstMatrixView<S, Cuda> own,
                 const std::int64_t* source, MatrixView<Gathered<S>, Cuda> to);

}  // namespace espalier
