// Products of a few rows with a few coefficients, or with a few other rows: matrices that lie in
// the first-level cache, of which many follow one another. A tile of the result stays in vector
// registers while the rows that make it pass by.
//
// An element's sum has one order and fused roundings, whatever the tile.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dot_products.hpp"
#include "simd.hpp"

namespace espalier {

template <class T>
Vector<T> in_every_lane(T x) {
  return x - Vector<T>{};
}

/// Rows of one length, one under the other.
template <class T>
struct FewRows {
  T* data;
  std::int64_t count, columns;

  T* row(std::int64_t i) const { return data + i * columns; }
};

/// Columns j .. j + V vectors of kRows rows of the result.
template <class T, int kRows, int V>
void combine_tile(const T* coefficients, const FewRows<const T>& in, T* out, std::int64_t stride,
                  std::int64_t j) {
  Vector<T> sum[kRows][V] = {};
  for (std::int64_t i = 0; i < in.count; ++i) {
    Vector<T> x[V];
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) x[v] = vector_at(in.row(i) + j + v * kLanes<T>);
#pragma GCC unroll 8
    for (int o = 0; o < kRows; ++o)
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v)
        sum[o][v] = fused_multiply_add(in_every_lane(coefficients[o * in.count + i]), x[v], sum[o][v]);
  }
#pragma GCC unroll 8
  for (int o = 0; o < kRows; ++o)
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) put_vector<T>(sum[o][v], out + o * stride + j + v * kLanes<T>);
}

template <class T, int kRows>
void combine_rows(const T* coefficients, const FewRows<const T>& in, T* out) {
  const auto columns = in.columns;
  std::int64_t j = 0;
  for (; j + 2 * kLanes<T> <= columns; j += 2 * kLanes<T>)
    combine_tile<T, kRows, 2>(coefficients, in, out, columns, j);
  for (; j < columns && columns >= kLanes<T>; j += kLanes<T>)  // the last vector may overlap
    combine_tile<T, kRows, 1>(coefficients, in, out, columns, std::min(j, columns - kLanes<T>));
  for (; j < columns; ++j)
    for (int o = 0; o < kRows; ++o) {
      T sum = 0;
      for (std::int64_t i = 0; i < in.count; ++i)
        sum = fused_multiply_add(coefficients[o * in.count + i], in.row(i)[j], sum);
      out[o * columns + j] = sum;
    }
}

/// out_o = sum over i of coefficients[o][i] in_i.
template <class T>
void combine(const T* coefficients, const FewRows<const T>& in, const FewRows<T>& out) {
  std::int64_t o = 0;
  for (; o + 4 <= out.count; o += 4) combine_rows<T, 4>(coefficients + o * in.count, in, out.row(o));
  for (; o < out.count; ++o) combine_rows<T, 1>(coefficients + o * in.count, in, out.row(o));
}

template <class T, int kOthers>
void add_products_with(const T* x, const FewRows<const T>& others, std::int64_t first, T* lanes) {
  const auto lanes_of = [&](int o) { return lanes + (first + o) * kSumLanes<T>; };
  LaneSums<T> sums[kOthers];
#pragma GCC unroll 4
  for (int o = 0; o < kOthers; ++o) sums[o] = LaneSums<T>::at(lanes_of(o));
  std::int64_t j = 0;
  for (; j + kSumLanes<T> <= others.columns; j += kSumLanes<T>)
#pragma GCC unroll 4
    for (int o = 0; o < kOthers; ++o) sums[o].add(x + j, others.row(first + o) + j);
#pragma GCC unroll 4
  for (int o = 0; o < kOthers; ++o) sums[o].put(lanes_of(o));
  for (int o = 0; o < kOthers && j < others.columns; ++o)
    with_rest(sums[o], x + j, others.row(first + o) + j, 0, others.columns - j).put(lanes_of(o));
}

/// lanes [others][kSumLanes] += the products of the elements of x with those of each row: their sum
/// over the lanes is the dot product.
template <class T>
void add_products(const T* x, const FewRows<const T>& others, T* lanes) {
  std::int64_t o = 0;
  for (; o + 4 <= others.count; o += 4) add_products_with<T, 4>(x, others, o, lanes);
  for (; o < others.count; ++o) add_products_with<T, 1>(x, others, o, lanes);
}

}  // namespace espalier
