// Jumping knowledge (Xu et al., Representation learning on graphs with jumping knowledge networks,
// ICML 2018): what is learnt from is the results of all layers, side by side or element by element
// the largest.
//
//     J = [H[1] .. H[L]]  or  J = max over l of H[l]     rows of the seeds, the first of each H[l]
#pragma once

#include <cstdint>
#include <string_view>

#include "espalier/base/error.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

enum class Jumping { kNone, kConcat, kMax };

/// Throws UserError(kUsage) for a name that is none.
inline Jumping jumping_of(std::string_view name) {
  if (name == "none") return Jumping::kNone;
  if (name == "concat") return Jumping::kConcat;
  if (name == "max") return Jumping::kMax;
  usage_error("jumping \"{}\" is not one of none, concat, max", name);
}

/// h [rows, f] becomes J[:, at .. at + f].
template <class T>
void place_columns(const Cpu&, ConstMatrixView<T> h, std::int64_t at, MatrixView<T> j);
template <class T>
void place_columns(const Cuda&, ConstMatrixView<T, Cuda> h, std::int64_t at, MatrixView<T, Cuda> j);

/// gradient [rows, f] += dJ[:, at .. at + f].
template <class T>
void add_columns(const Cpu&, ConstMatrixView<T> dj, std::int64_t at, MatrixView<T> gradient);
template <class T>
void add_columns(const Cuda&, ConstMatrixView<T, Cuda> dj, std::int64_t at, MatrixView<T, Cuda> gradient);

/// J = max(J, h), and winners [rows * f] = `number` where h is larger; with number 1 J = h. Of
/// equal elements the first layer's counts.
template <class T>
void take_larger(const Cpu&, ConstMatrixView<T> h, int number, MatrixView<T> j,
                 Buffer<std::int32_t>& winners);
template <class T>
void take_larger(const Cuda&, ConstMatrixView<T, Cuda> h, int number, MatrixView<T, Cuda> j,
                 DeviceArray<std::int32_t>& winners);

/// gradient += dJ where layer `number` has won.
template <class T>
void add_where_larger(const Cpu&, ConstMatrixView<T> dj, int number, const Buffer<std::int32_t>& winners,
                      MatrixView<T> gradient);
template <class T>
void add_where_larger(const Cuda&, ConstMatrixView<T, Cuda> dj, int number,
                      const DeviceArray<std::int32_t>& winners, MatrixView<T, Cuda> gradient);

}  // namespace espalier
