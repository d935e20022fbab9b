// What the CPU's and the GPU's attention share: where weights lie, what their signs say, and the
// sums of one head.
#pragma once

#include <cmath>
#include <cstdint>

#include "espalier/base/host_device.hpp"
#include "espalier/nn/dropout.hpp"
#include "espalier/nn/edge_softmax.hpp"

namespace espalier {

template <class T>
ESPALIER_HD inline T leaky(T x, T slope = static_cast<T>(kLeakySlope)) {
  return x > 0 ? x : slope * x;
}
template <class T>
ESPALIER_HD inline T leaky_gradient(T x, T slope = static_cast<T>(kLeakySlope)) {
  return x > 0 ? T{1} : slope;
}

/// What stands before the leaky ReLU, of a head; `terms`: what features of the edge add, or null.
template <class T>
ESPALIER_HD inline T score_of(T source, T target, const T* terms, std::int64_t head) {
  return terms == nullptr ? source + target : (source + target) + terms[head];
}

/// A weight with what dropout says of it in its sign.
template <class T>
ESPALIER_HD inline T marked(T weight, bool kept) {
  return kept ? weight : -weight;
}
template <class T>
ESPALIER_HD inline T weight_of(T marked) {
  return marked < 0 ? -marked : marked;
}
/// What it is multiplied with on its way, `scale` being 1 / (1 - rate). NaN stays.
template <class T>
ESPALIER_HD inline T dropped(T marked, T scale) {
  return marked <= 0 ? T{0} : marked * scale;
}

/// Does dropout keep weight number `at` of a row?
ESPALIER_HD inline bool keeps_weight(const KeyedStream& stream, std::int64_t row, std::uint32_t threshold,
                                     std::int64_t at) {
  const auto words = random_block(stream.of_row(row), static_cast<std::uint64_t>(at / kMasksPerBlock));
  const int position = static_cast<int>(at % kMasksPerBlock);
  bool kept = true;
  // Every place is known: an index into the words would put them on a stack.
#if defined(__CUDACC__)
#pragma unroll
#endif
  for (int k = 0; k < kMasksPerBlock; ++k)
    if (k == position) kept = dropout_keeps(words, k, threshold);
  return kept;
}

/// The product of two vectors: eight interleaved sums, then those in order.
template <class T>
ESPALIER_HD inline T product_of(const T* a, const T* b, std::int64_t width) {
  T parts[8] = {};
  std::int64_t j = 0;
  for (; j + 8 <= width; j += 8)
    for (int k = 0; k < 8; ++k) parts[k] += a[j + k] * b[j + k];
  // All places known, so that a GPU keeps the sums in registers.
  for (int k = 0; k < 8; ++k)
    if (j + k < width) parts[k] += a[j + k] * b[j + k];
  return ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
}

/// Marks the weights of a row that dropout takes. On the host.
template <class T>
inline void mark_dropped(const KeyedStream& stream, std::int64_t row, std::uint32_t threshold, T* weights,
                         std::int64_t count) {
  const auto of_row = stream.of_row(row);
  for (std::int64_t at = 0; at < count; at += kMasksPerBlock) {
    const auto words = random_block(of_row, static_cast<std::uint64_t>(at / kMasksPerBlock));
    for (int k = 0; k < kMasksPerBlock && at + k < count; ++k)
      weights[at + k] = marked(weights[at + k], dropout_keeps(words, k, threshold));
  }
}

#define ESPALIER_INSTANTIATE_EDGE_SOFTMAX(T, Space)                                                          \
  template void edge_softmax<T>(const Space&, const BlockView<Space>&, const Matrix<T, Space>&,              \
                                const Matrix<T, Space>&, const Matrix<T, Space>*, const KeyedStream&,        \
                                double, Matrix<T, Space>&);                                                  \
  template void attend<T>(const Space&, const BlockView<Space>&, const Matrix<T, Space>&, double,            \
                          ConstMatrixView<T, Space>, MatrixView<T, Space>, Update);                          \
  template void edge_softmax_backward<T>(const Space&, const BlockView<Space>&, const Matrix<T, Space>&,     \
                                         double, const Matrix<T, Space>&, const Matrix<T, Space>&,           \
                                         const Matrix<T, Space>*, ConstMatrixView<T, Space>,                 \
                                         ConstMatrixView<T, Space>, Matrix<T, Space>&, Matrix<T, Space>&);   \
  template void attend_backward<T>(const Space&, const BlockView<Space>&, const Array<Space, std::int32_t>&, \
                                   const Matrix<T, Space>&, double, const Matrix<T, Space>&,                 \
                                   const Matrix<T, Space>&, const BlockView<Space>&,                         \
                                   ConstMatrixView<T, Space>, const Matrix<T, Space>&,                       \
                                   const Matrix<T, Space>&, Matrix<T, Space>&, Matrix<T, Space>&);           \
  template void head_scores_backward<T>(const Space&, ConstMatrixView<T, Space>, const Matrix<T, Space>&,    \
                                        Matrix<T, Space>&);

}  // namespace espalier
