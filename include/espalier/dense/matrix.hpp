// A dense matrix, row-major, without padding: entry (i, j) is data[i * columns + j].
//
// Operations take views, so that a prefix of the rows (a layer's destinations among its sources) is
// a matrix too. A Matrix converts to a view of the whole; name the element type at the call,
// `gemm<T>(cpu, a, b, c)`, and it happens by itself.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "espalier/base/execution.hpp"
#include "espalier/base/host_device.hpp"

namespace espalier {

template <class T, class Space = Cpu>
struct Matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Array<Space, T> data;  ///< [rows * columns], memory of the space

  Matrix() = default;
  /// Entries are not initialised.
  Matrix(std::int64_t rows_, std::int64_t columns_) { resize(rows_, columns_); }

  /// Entries are not initialised and not kept in place. The memory is kept: a matrix that is
  /// resized for every minibatch soon allocates no more, because what it allocates anew has an
  /// eighth to spare.
  void resize(std::int64_t rows_, std::int64_t columns_) {
    rows = rows_;
    columns = columns_;
    const auto size = static_cast<std::size_t>(rows * columns);
    if (size > data.capacity() && !data.empty()) {
      data.clear();  // no copy of what nobody reads
      data.reserve(size + size / 8);
    }
    data.resize(size);
  }
  T* row(std::int64_t i) { return data.data() + i * columns; }
  const T* row(std::int64_t i) const { return data.data() + i * columns; }
  T& operator()(std::int64_t i, std::int64_t j) { return data[i * columns + j]; }
  const T& operator()(std::int64_t i, std::int64_t j) const { return data[i * columns + j]; }
};

/// Made once, in dense/gather.cpp: where a room is compiled for less time, walking over what is not
/// initialised is a loop, and the linker may take any room's.
extern template void Matrix<float, Cpu>::resize(std::int64_t, std::int64_t);

/// Borrowed rows of a matrix; T may be const. Valid until the matrix is resized. Entries are read
/// where the space is.
template <class T, class Space = Cpu>
struct MatrixView {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  T* data = nullptr;  ///< [rows * columns]

  MatrixView() = default;
  ESPALIER_HD MatrixView(std::int64_t rows_, std::int64_t columns_, T* data_)
      : rows(rows_), columns(columns_), data(data_) {}
  MatrixView(Matrix<std::remove_const_t<T>, Space>& m) : MatrixView(m.rows, m.columns, m.data.data()) {}
  MatrixView(const Matrix<std::remove_const_t<T>, Space>& m) requires std::is_const_v<T>
      : MatrixView(m.rows, m.columns, m.data.data()) {}
  template <class U>
  requires std::is_same_v<const U, T> MatrixView(const MatrixView<U, Space>& m)
      : MatrixView(m.rows, m.columns, m.data) {}

  ESPALIER_HD T* row(std::int64_t i) const { return data + i * columns; }
  ESPALIER_HD T& operator()(std::int64_t i, std::int64_t j) const { return data[i * columns + j]; }
  /// The first `count` rows.
  MatrixView first_rows(std::int64_t count) const { return {count, columns, data}; }
};

template <class T, class Space = Cpu>
using ConstMatrixView = MatrixView<const T, Space>;

/// Does an operation replace its result or add to it?
enum class Update { kOverwrite, kAccumulate };

}  // namespace espalier
