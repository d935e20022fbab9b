// A dense matrix, row-major, without padding: entry (i, j) is data[i * columns + j].
#pragma once

#include <cstdint>
#include <span>

#include "espalier/base/buffer.hpp"

namespace espalier {

template <class T>
struct Matrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Buffer<T> data;  ///< [rows * columns]

  Matrix() = default;
  /// Entries are not initialised.
  Matrix(std::int64_t rows_, std::int64_t columns_) { resize(rows_, columns_); }

  /// Entries are not initialised and not kept in place.
  void resize(std::int64_t rows_, std::int64_t columns_) {
    rows = rows_;
    columns = columns_;
    data.resize(static_cast<std::size_t>(rows * columns));
  }
  T* row(std::int64_t i) { return data.data() + i * columns; }
  const T* row(std::int64_t i) const { return data.data() + i * columns; }
  T& operator()(std::int64_t i, std::int64_t j) { return data[static_cast<std::size_t>(i * columns + j)]; }
  const T& operator()(std::int64_t i, std::int64_t j) const {
    return data[static_cast<std::size_t>(i * columns + j)];
  }
};

}  // namespace espalier
