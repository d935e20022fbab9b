// Rows of features in fewer bits than a file has: graph.feature_bits = 8, 4, 2 or 1. Rows
// are packed once, when they are read, and lie, are kept and travel so; what a minibatch
// gets is float32.
//
// Of column j let a be the least and b the largest number of all vertices (of a type), as float32,
// after graph.feature_norm, and L = 2^bits - 1. In float64, every operation rounded by itself:
//
//     step   = (b - a) / L
//     code   = (x - a) / step, rounded to a whole number, halves to even; 0 where step is 0
//     number = float32(a + code step)            off by no more than step / 2 and a rounding
//
// so on every grid a number becomes the same, and a column of one number stays what it is. NumPy's
// np.rint(..) and .astype(np.float32) give the same bits.
//
// A row is its codes, one behind the other, the first in the lowest bits of the first byte, as
// np.packbits(.., bitorder="little") has them, then zeros up to a whole number of words.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "espalier/base/host_device.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/dense/gather.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

/// What codes stand for.
template <class Space>
struct QuantisationOn {
  std::int64_t columns = 0;
  int bits = 8;                ///< 1, 2, 4 or 8
  Array<Space, double> least;  ///< [columns] a
  Array<Space, double> step;   ///< [columns]
};
using Quantisation = QuantisationOn<Cpu>;

/// [rows, words of a row], memory of the space.
template <class Space>
struct QuantisedRowsOn : Matrix<QuantisedWord, Space> {
  QuantisationOn<Space> packing;
};
using QuantisedRows = QuantisedRowsOn<Cpu>;

inline std::int64_t words_of_quantised(std::int64_t columns, std::int64_t bits) {
  return (columns * bits + 15) / 16;
}

/// What code j of a row is, and what it stands for.
ESPALIER_HD inline std::uint32_t quantised_code(const std::uint8_t* row, std::int64_t j, int bits) {
  const auto bit = j * bits;
  return (row[bit / 8] >> (bit % 8)) & ((1u << bits) - 1);
}
ESPALIER_HD inline float quantised_number(std::uint32_t code, double least, double step) {
  return static_cast<float>(least + code * step);
}

/// Calls what it is given with all rows of this rank, some at a time, every time that it is called.
using RowsInParts = std::function<void(const std::function<void(const Matrix<float>&)>&)>;

/// Collective over `comm`, whose ranks have all rows together: the packing of rows of so many
/// columns. Exact, so it does not depend on who has which.
Quantisation measure_packing(const RowsInParts& pieces, std::int64_t columns, int bits,
                             const Communicator& comm);

/// to[i] = row i, packed. to [rows, words of a row].
void quantise_rows(const Quantisation& packing, ConstMatrixView<float> rows, MatrixView<QuantisedWord> to);

/// gather_rows (dense/gather.hpp) of quantised rows: to[k] is what from[source[k]] stands for, or
/// own[~source[k]] where that is negative. from, own [any, words]; to [rows, packing.columns].
void dequantise_rows(const Cpu&, const Quantisation& packing, ConstMatrixView<QuantisedWord> from,
                     ConstMatrixView<QuantisedWord> own, const std::int64_t* source, MatrixView<float> to);
void dequantise_rows(const Cuda&, const QuantisationOn<Cuda>& packing,
                     ConstMatrixView<QuantisedWord, Cuda> from, ConstMatrixView<QuantisedWord, Cuda> own,
                     const std::int64_t* source, MatrixView<float, Cuda> to);

}  // namespace espalier
