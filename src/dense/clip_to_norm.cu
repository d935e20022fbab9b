// The pieces of a matrix are added up by a thread each, the pieces by one.
#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/dense/clip_to_norm.hpp"
#include "espalier/dense/device_matrix.hpp"

namespace espalier {

void clip_to_norm(const Cuda& cuda, double most, std::vector<Matrix<float, Cuda>>& matrices,
                  Array<Cuda, double>& scratch) {
  std::int64_t count = 0;
  for (const auto& matrix : matrices) count += pieces_of(static_cast<std::int64_t>(matrix.data.size()));
  scratch.resize(static_cast<std::size_t>(count + 1));
  double* sums = scratch.data();
  for (const auto& matrix : matrices) {
    const auto size = static_cast<std::int64_t>(matrix.data.size());
    const float* const values = matrix.data.data();
    double* const of_matrix = sums;
    for_each(cuda, "squares", pieces_of(size), [=] __device__(std::int64_t piece) {
      of_matrix[piece] = squares_of_piece(values, size, piece);
    });
    sums += pieces_of(size);
  }
  const double* const pieces = scratch.data();
  double* const factor = sums;
  for_each(cuda, "clip_factor", 1,
           [=] __device__(std::int64_t) { *factor = clip_factor(pieces, count, most); });
  for (auto& matrix : matrices) {
    float* const values = matrix.data.data();
    for_each(cuda, "clip_to_norm", static_cast<std::int64_t>(matrix.data.size()),
             [=] __device__(std::int64_t k) { values[k] = scaled_by(*factor, values[k]); });
  }
}

}  // namespace espalier
