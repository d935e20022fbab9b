// The softmax of scores beside a block's entries, head by head, over the entries of a row or over
// those of each relation in it:
//
//     w_e = exp(leaky(s_e)) / sum over the entries e' of e's part of the row of exp(leaky(s_e'))
//
// leaky(s) = s for s > 0, else slope times it. Unlike nn/edge_softmax.hpp there is no weight of the
// vertex itself, and a score is a number beside the entry. Which weights dropout takes stands in
// their sign, as there: number (e - row's first) * heads + h of the row's stream decides.
//
// Law: the weights of a part of a row depend on its scores only. A GPU gives the same but for the
// rounding of exp.
#pragma once

#include "edge_softmax_rules.hpp"
#include "espalier/base/elementary.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/base/philox.hpp"
#include "espalier/nn/views.hpp"

namespace espalier {

/// What a softmax is over.
struct SoftmaxOver {
  bool relations = false;  ///< each relation's entries of a row, or all of the row
  double slope = 1;        ///< of scores below 0
};

/// weights [entries, heads] of scores [entries, heads], resized.
template <class T>
void entry_softmax(const Cpu&, const BlockView<Cpu>& block, SoftmaxOver over, const Matrix<T>& scores,
                   const KeyedStream& mask, double rate, Matrix<T>& weights);
template <class T>
void entry_softmax(const Cuda&, const BlockView<Cuda>& block, SoftmaxOver over, const Matrix<T, Cuda>& scores,
                   const KeyedStream& mask, double rate, Matrix<T, Cuda>& weights);

/// gradients [entries, heads], of what weights become by dropout, become those of the scores.
template <class T, class Space>
void entry_softmax_backward(const Space&, const BlockViewOn<Space>& block, SoftmaxOver over,
                            const MatrixOn<Space, T>& scores, const MatrixOn<Space, T>& weights, double rate,
                            MatrixOn<Space, T>& gradients);

// The softmax of one head of one part of a row, for both spaces: element k of the part stands k *
// heads after the first.

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
