// Matrices that are made shorter where, as one long vector, they are longer than they may be (the
// norm clipping of Pascanu et al. 2013):
//
//     norm = sqrt(sum of squares of all elements)
//     every element *= min(1, most / (norm + 1e-6))
//
// The sum is one of doubles in an order of the elements' places only, so the same bits come out in
// every space, with any number of threads.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"

namespace espalier {

/// `scratch`: memory to work in. On a GPU the host does not wait. What is not finite stays so.
void clip_to_norm(const Cpu&, double most, std::vector<Matrix<float>>& matrices, Array<Cpu, double>& scratch);
void clip_to_norm(const Cuda&, double most, std::vector<Matrix<float, Cuda>>& matrices,
                  Array<Cuda, double>& scratch);

// ---- the order of the sum: pieces of a matrix, each from its first element on; then the pieces of
// all matrices from the first on

inline constexpr std::int64_t kNormPiece = 256;

inline std::int64_t pieces_of(std::int64_t size) {
  return (size + kNormPiece - 1) / kNormPiece;
}
ESPALIER_HD inline double squares_of_piece(const float* values, std::int64_t size, std::int64_t piece) {
  const std::int64_t begin = piece * kNormPiece, rest = size - begin,
                     end = rest < kNormPiece ? size : begin + kNormPiece;
  double sum = 0;
  for (std::int64_t k = begin; k < end; ++k)
    sum += static_cast<double>(values[k]) * static_cast<double>(values[k]);
  return sum;
}
ESPALIER_HD inline double clip_factor(const double* pieces, std::int64_t count, double most) {
  double sum = 0;
  for (std::int64_t k = 0; k < count; ++k) sum += pieces[k];
  const double factor = most / (std::sqrt(sum) + 1e-6);
  return factor < 1 ? factor : 1;
}
ESPALIER_HD inline float scaled_by(double factor, float value) {
  return factor < 1 ? static_cast<float>(factor * static_cast<double>(value)) : value;
}

}  // namespace espalier
