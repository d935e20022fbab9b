// A row of Y = B X, bound by how fast rows of X can be gathered from memory.
//
// A row of Y is computed strip by strip of the feature dimension: the sums of a strip live in
// vector registers while the row's entries pass by. A row of up to kMostVectors vectors and a rest
// is one strip, so each row of X is visited once. The rest, less than a vector, is computed as the
// row's last full vector, of which only the new elements are stored. While an entry is added, the
// row of X that comes kFarEntries later, often that of another row of Y, is fetched into the
// second-level cache, which waits for more lines at a time than the first; a wide strip's is
// brought to the first kNearEntries ahead. (Measured, rows at random places of 134 to 537 MB: a
// third to a half faster than fetching into the first level alone.)
//
// An element's sum has the same order and the same roundings in any strip.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "espalier/dense/matrix.hpp"
#include "simd.hpp"

namespace espalier::spmm_rows {

inline constexpr std::int64_t kFarEntries = 16, kNearEntries = 3;
inline constexpr int kFirstLevel = 3, kSecondLevel = 2;  // as __builtin_prefetch names them
inline constexpr int kMostVectors = kVectorRegisters / 4;

/// The entries of one row.
struct Entries {
  const std::int32_t* columns;
  const float* values;  ///< null: all 1
  std::int64_t count;
  std::int64_t prefetchable;  ///< entries from `columns` to the end of the block
};

template <class T>
T value_of(const Entries& row, std::int64_t e) {
  return row.values != nullptr ? static_cast<T>(row.values[e]) : T{1};
}

/// May a whole vector be read from the beginning of a row?
template <class T>
bool holds_vector(const ConstMatrixView<T>& x, std::int32_t column) {
  return x.data + x.rows * x.columns - x.row(column) >= kLanes<T>;
}

template <class T>
Vector<T> load(const T* from) {
  return vector_at(from);
}

/// Adds V vectors from column j on and, with kRest, the last vector of the row, of which the final
/// `rest` elements are stored.
template <class T, int V, bool kRest>
void add_strip(const Entries& row, const ConstMatrixView<T>& x, T* y, std::int64_t j, std::int64_t rest,
               bool accumulate) {
  const T* const strip = x.data + j;  // of row 0
  y += j;
  const std::int64_t last = x.columns - kLanes<T> - j;
  Vector<T> sum[V + 1];
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) sum[v] = accumulate ? load<T>(y + v * kLanes<T>) : Vector<T>{};
  if (kRest) sum[V] = accumulate ? load<T>(y + last) : Vector<T>{};
  for (std::int64_t e = 0; e < row.count; ++e) {
    if (e + kFarEntries < row.prefetchable) {
      const T* later = strip + row.columns[e + kFarEntries] * x.columns;
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) __builtin_prefetch(later + v * kLanes<T>, 0, kSecondLevel);
      if (kRest) __builtin_prefetch(later + last, 0, kSecondLevel);
      if (kRest) __builtin_prefetch(later + x.columns - j - 1, 0, kSecondLevel);
    }
    if (V == kMostVectors && e + kNearEntries < row.prefetchable) {
      const T* next = strip + row.columns[e + kNearEntries] * x.columns;
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) __builtin_prefetch(next + v * kLanes<T>, 0, kFirstLevel);
    }
    const T value = value_of<T>(row, e);
    const T* source = strip + row.columns[e] * x.columns;
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) sum[v] += value * load<T>(source + v * kLanes<T>);
    if (kRest) sum[V] += value * load<T>(source + last);
  }
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) put_vector<T>(sum[v], y + v * kLanes<T>);
  if (kRest)
    for (std::int64_t k = kLanes<T> - rest; k < kLanes<T>; ++k) y[last + k] = sum[V][k];
}

/// A row of X of less than one vector: what follows in X fills the vector, and no one reads it.
template <class T>
Vector<T> load_narrow(const ConstMatrixView<T>& x, std::int32_t column) {
  if (holds_vector(x, column)) return load<T>(x.row(column));
  Vector<T> loaded = {};
  for (std::int64_t k = 0; k < x.columns; ++k) loaded[k] = x.row(column)[k];
  return loaded;
}

template <class T>
void add_narrow_row(const Entries& row, const ConstMatrixView<T>& x, T* y, bool accumulate) {
  Vector<T> sum = {};
  if (accumulate)
    for (std::int64_t k = 0; k < x.columns; ++k) sum[k] = y[k];
  for (std::int64_t e = 0; e < row.count; ++e) {
    if (e + kFarEntries < row.prefetchable)
      __builtin_prefetch(x.row(row.columns[e + kFarEntries]), 0, kSecondLevel);
    sum += value_of<T>(row, e) * load_narrow<T>(x, row.columns[e]);
  }
  for (std::int64_t k = 0; k < x.columns; ++k) y[k] = sum[k];
}

template <class T>
using Strip = void (*)(const Entries&, const ConstMatrixView<T>&, T*, std::int64_t, std::int64_t, bool);

/// The strip of 0 .. kMostVectors vectors.
template <class T, bool kRest>
Strip<T> strip(std::int64_t vectors) {
  static constexpr auto kStrips = []<int... V>(std::integer_sequence<int, V...>) {
    return std::array<Strip<T>, sizeof...(V)>{add_strip<T, V, kRest>...};
  }
  (std::make_integer_sequence<int, kMostVectors + 1>{});
  return kStrips[vectors];
}

template <class T>
void add_row(const Entries& row, const ConstMatrixView<T>& x, T* y, bool accumulate) {
  if (x.columns < kLanes<T>) return add_narrow_row(row, x, y, accumulate);
  constexpr std::int64_t kWidest = kMostVectors * kLanes<T>;
  std::int64_t j = 0;
  for (; x.columns - j >= kWidest + kLanes<T>; j += kWidest)
    add_strip<T, kMostVectors, false>(row, x, y, j, 0, accumulate);
  const std::int64_t vectors = (x.columns - j) / kLanes<T>, rest = (x.columns - j) % kLanes<T>;
  (rest > 0 ? strip<T, true>(vectors) : strip<T, false>(vectors))(row, x, y, j, rest, accumulate);
}

}  // namespace espalier::spmm_rows
