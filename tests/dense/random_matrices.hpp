// Random blocks and matrices for the tests of dense/, sparse/ and nn/, and how near two are.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <random>
#include <vector>

#include "espalier/base/half.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// Entries uniform in [-1, 1).
template <class T>
Matrix<T> random_matrix(std::int64_t rows, std::int64_t columns, std::mt19937_64& random) {
  Matrix<T> m(rows, columns);
  std::uniform_real_distribution<T> uniform(-1, 1);
  for (T& x : m.data) x = uniform(random);
  return m;
}

/// A number as a matrix of T stores it.
template <class T>
T as_stored(float x) {
  if constexpr (std::is_same_v<T, Half>)
    return to_half(x);
  else
    return x;
}

/// The elements, row by row.
template <class T>
Matrix<T> matrix_of(std::int64_t rows, std::int64_t columns, std::initializer_list<T> elements) {
  Matrix<T> m(rows, columns);
  std::ranges::copy(elements, m.data.begin());
  return m;
}

template <class T>
Matrix<T> filled_matrix(std::int64_t rows, std::int64_t columns, T value) {
  Matrix<T> m(rows, columns);
  std::ranges::fill(m.data, value);
  return m;
}

/// Rows of 0 .. most entries, columns in no order and possibly repeated, values in [-1, 1). Any
/// shape but rows without columns.
inline Block random_block_matrix(std::int64_t rows, std::int64_t columns, int most, std::mt19937_64& random) {
  Block block;
  block.rows = rows;
  block.columns = columns;
  std::uniform_real_distribution<float> value(-1, 1);
  for (std::int64_t i = 0; i < rows; ++i) {
    const int count = columns == 0 ? 0 : static_cast<int>(random() % static_cast<std::uint64_t>(most + 1));
    for (int e = 0; e < count; ++e) {
      block.indices.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(columns)));
      block.values.push_back(value(random));
    }
    block.indptr.push_back(static_cast<std::int64_t>(block.indices.size()));
  }
  return block;
}

/// A block in the middle of common arrays: behind `before` entries of other blocks, and in
/// front of some.
struct SharedBlock {
  Block arrays;
  BlockView<> block;

  SharedBlock(const Block& from, std::int64_t before) {
    const auto around = [this](std::int64_t entries) {
      // No column.
      arrays.indices.insert(arrays.indices.end(), static_cast<std::size_t>(entries), 1 << 30);
      arrays.values.insert(arrays.values.end(), static_cast<std::size_t>(entries), NAN);
    };
    around(before);
    arrays.indices.insert(arrays.indices.end(), from.indices.begin(), from.indices.end());
    arrays.values.insert(arrays.values.end(), from.values.begin(), from.values.end());
    around(9);
    arrays.indptr = from.indptr;
    for (auto& start : arrays.indptr) start += before;
    block = view_of(arrays, from);
  }

  /// Of a copy of `arrays` in any space.
  template <class Space>
  static BlockView<Space> view_of(const Csr<std::int32_t, Space>& arrays, const Block& from) {
    return {from.rows,
            from.columns,
            from.entries(),
            arrays.indptr.data(),
            arrays.indices.data(),
            {from.has_values(), arrays.values}};
  }
};

/// The blocks of a minibatch, input side first: blocks[l].columns = blocks[l-1].rows, each row 0 ..
/// 4 picks of value 1 / picks.
inline std::vector<Block> random_minibatch(const std::vector<std::int64_t>& frontiers,
                                           std::mt19937_64& random) {
  std::vector<Block> blocks;
  for (std::size_t l = 1; l < frontiers.size(); ++l) {
    blocks.push_back(random_block_matrix(frontiers[l], frontiers[l - 1], 4, random));
    for (std::int64_t i = 0; i < blocks.back().rows; ++i)
      for (std::int64_t e = blocks.back().row_begin(i); e < blocks.back().row_end(i); ++e)
        blocks.back().values[static_cast<std::size_t>(e)] =
            1.0f / static_cast<float>(blocks.back().row_size(i));
  }
  return blocks;
}

/// Are the two the same, bit for bit?
template <class T>
bool same_bits(const Matrix<T>& a, const Matrix<T>& b) {
  return a.rows == b.rows && a.columns == b.columns &&
         (a.data.empty() || std::memcmp(a.data.data(), b.data.data(), a.data.size() * sizeof(T)) == 0);
}

/// The same, but a NaN is as good as another: NVIDIA's arithmetic gives 0x7fffffff, the CPU's
/// keeps the operand's.
inline bool same_numbers(const Matrix<float>& a, const Matrix<float>& b) {
  return a.rows == b.rows && a.columns == b.columns &&
         std::ranges::equal(a.data, b.data, [](float x, float y) {
           return std::isnan(x) ? std::isnan(y)
                                : std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
         });
}

inline bool same_block(const Block& a, const Block& b) {
  return a.rows == b.rows && a.columns == b.columns && a.indptr == b.indptr && a.indices == b.indices &&
         a.values == b.values;
}

/// Euclidean norm of a - b, by that of b or, if b is smaller, by `least`; the shapes must agree.
template <class A, class B>
double relative_difference(const Matrix<A>& a, const Matrix<B>& b, double least) {
  if (a.rows != b.rows || a.columns != b.columns) return 1e300;
  double difference = 0, norm = 0;
  for (std::size_t e = 0; e < b.data.size(); ++e) {
    difference += std::pow(static_cast<double>(a.data[e]) - static_cast<double>(b.data[e]), 2);
    norm += std::pow(static_cast<double>(b.data[e]), 2);
  }
  return std::sqrt(difference) / std::max(std::sqrt(norm), least);
}

/// The derivatives of loss() by the elements of `value`, which it depends on: central differences.
template <class Loss>
Matrix<double> numeric_gradient(Matrix<double>& value, const Loss& loss) {
  constexpr double kStep = 1e-6;
  Matrix<double> gradient(value.rows, value.columns);
  for (std::size_t e = 0; e < value.data.size(); ++e) {
    const double kept = value.data[e];
    value.data[e] = kept + kStep;
    const double above = loss();
    value.data[e] = kept - kStep;
    gradient.data[e] = (above - loss()) / (2 * kStep);
    value.data[e] = kept;
  }
  return gradient;
}

/// The largest |a - b|; the shapes must agree.
template <class A, class B>
double largest_difference(const Matrix<A>& a, const Matrix<B>& b) {
  double largest = a.rows == b.rows && a.columns == b.columns ? 0 : 1e300;
  for (std::size_t e = 0; e < std::min(a.data.size(), b.data.size()); ++e)
    largest = std::max(largest, std::abs(static_cast<double>(a.data[e]) - static_cast<double>(b.data[e])));
  return largest;
}

}  // namespace espalier
