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
ESPALIER_HD inline T leaky(T x) {
  return x > 0 ? x : static_cast<T>(kLeakySlope) * x;
}
template <class T>
ESPALIER_HD inline T leaky_gradient(T x) {
  return x > 0 ? T{1} : static_cast<T>(kLeakySlope);
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
inline void mark_dropped(RandomStream stream, std::int64_t row, std::uint32_t threshold, T* weights,
                         std::int64_t count) {
  stream.row = static_cast<std::uint64_t>(row);
  for (std::int64_t at = 0; at < count; at += kMasksPerBlock) {
    const auto words = random_block(stream, static_cast<std::uint64_t>(at / kMasksPerBlock));
    for (int k = 0; k < kMasksPerBlock && at + k < count; ++k)
      weights[at + k] = marked(weights[at + k], dropout_keeps(words, k, threshold));
  }
}

}  // namespace espalier
