// The softmax of one head of one part of a row, for both spaces: element k of the part stands k *
// heads after the first.
#pragma once

#include "edge_softmax_rules.hpp"
#include "espalier/base/elementary.hpp"

namespace espalier {

template <class T>
ESPALIER_HD inline void softmax_of_part(const T* scores, std::int64_t count, std::int64_t heads, T slope,
                                        T* weights) {
  T most = leaky(scores[0], slope), sum = 0;
  for (std::int64_t k = 0; k < count; ++k) {
    const T score = leaky(scores[k * heads], slope);
    weights[k * heads] = score;
    most = score > most ? score : most;
  }
  for (std::int64_t k = 0; k < count; ++k) {
    weights[k * heads] = exp_of_nonpositive(weights[k * heads] - most);
    sum += weights[k * heads];
  }
  for (std::int64_t k = 0; k < count; ++k) weights[k * heads] /= sum;
}

template <class T>
ESPALIER_HD inline void softmax_of_part_backward(const T* scores, const T* weights, std::int64_t count,
                                                 std::int64_t heads, T slope, T scale, T* gradients) {
  T mean = 0;
  for (std::int64_t k = 0; k < count; ++k) {
    const T weight = weights[k * heads];
    gradients[k * heads] = weight <= 0 ? T{0} : scale * gradients[k * heads];
    mean += weight_of(weight) * gradients[k * heads];
  }
  for (std::int64_t k = 0; k < count; ++k)
    gradients[k * heads] = weight_of(weights[k * heads]) * (gradients[k * heads] - mean) *
                           leaky_gradient(scores[k * heads], slope);
}

/// The end of the part of a row, [begin, row_end), that begins at `begin`; places in the arrays.
ESPALIER_HD inline std::int64_t part_end(const std::uint8_t* relations, bool by_relation, std::int64_t begin,
                                         std::int64_t row_end) {
  if (!by_relation || relations == nullptr) return row_end;
  auto e = begin + 1;
  while (e < row_end && relations[e] == relations[begin]) ++e;
  return e;
}

}  // namespace espalier
