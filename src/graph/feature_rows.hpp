// The rows of a feature matrix in a file that is imported, from the first to the last: memory for
// one row, whatever the layout. Read by one rank.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "espalier/base/error.hpp"
#include "espalier/base/half.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

class FeatureRows {
 public:
  virtual ~FeatureRows() = default;
  virtual std::int64_t columns() const = 0;
  /// Are the numbers in the file float16? Then they are stored as such.
  virtual bool half() const { return false; }
  /// The next row; throws UserError where the file has none, or one that is no row of numbers.
  virtual void next(std::span<double> row) = 0;
  /// After the last row: throws UserError when the file goes on.
  virtual void finish() = 0;
  /// Where the row stands that was read last, for messages: "FILE:LINE".
  virtual std::string place() const = 0;
};

/// A feature as the graph file stores it; throws UserError where it is no finite number of T.
template <class T>
T stored_feature(const FeatureRows& from, double value, std::int64_t column) {
  const auto single = static_cast<float>(value);
  if (!std::isfinite(value))
    input_error("{}: column {} is {}, not a finite number", from.place(), column, value);
  if (!std::isfinite(single))
    input_error("{}: column {} is {}, too large for float32", from.place(), column, value);
  if constexpr (std::is_same_v<T, float>) {
    return single;
  } else {
    const auto half = to_half(single);
    if (!std::isfinite(to_float(half)))
      input_error("{}: column {} is {}, too large for float16; import without --half", from.place(), column,
                  value);
    return half;
  }
}

/// A feature that was computed, as it is stored.
inline void store_rounded(double value, float& to) {
  to = static_cast<float>(value);
}
inline void store_rounded(double value, Half& to) {
  to = to_half(static_cast<float>(value));
}

/// Rows of edges that met: that of the first of them, standing[e], -1 of none, becomes the sum, or
/// the mean, of all, in their order, in double precision and rounded once. Calls fail(row, column,
/// value) for what is no finite number then.
template <class T, class Fail>
void add_up_rows(Matrix<T>& rows, const Buffer<std::int64_t>& standing, bool mean, Fail fail) {
  struct Sum {
    std::int64_t edges = 0;
    std::vector<double> values;
  };
  std::map<std::int64_t, Sum> sums;  // of edges that met another
  const auto add = [&](Sum& sum, std::int64_t row) {
    sum.values.resize(static_cast<std::size_t>(rows.columns));
    for (std::int64_t k = 0; k < rows.columns; ++k) sum.values[k] += to_float(rows(row, k));
    ++sum.edges;
  };
  for (std::int64_t e = 0; e < rows.rows; ++e) {
    const auto first = standing[e];
    if (first < 0 || first == e) continue;
    auto& sum = sums[first];
    if (sum.edges == 0) add(sum, first);
    add(sum, e);
  }
  for (const auto& [first, sum] : sums)
    for (std::int64_t k = 0; k < rows.columns; ++k) {
      const auto value = mean ? sum.values[k] / static_cast<double>(sum.edges) : sum.values[k];
      store_rounded(value, rows(first, k));
      if (!std::isfinite(to_float(rows(first, k)))) fail(first, k, value);
    }
}

/// The next piece.rows rows.
template <class T>
void read_rows(FeatureRows& from, Matrix<T>& piece) {
  std::vector<double> row(static_cast<std::size_t>(from.columns()));
  for (std::int64_t r = 0; r < piece.rows; ++r) {
    from.next(row);
    for (std::int64_t k = 0; k < piece.columns; ++k) piece(r, k) = stored_feature<T>(from, row[k], k);
  }
}

}  // namespace espalier
