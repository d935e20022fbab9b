// Norms: the pieces of a matrix are added up by a thread each, the pieces by one.
#include "espalier/dense/tensor_updates.hpp"

#include <cmath>

#include "espalier/base/error.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/kernels.hpp"

namespace espalier {

inline constexpr std::int64_t kNormPiece = 256;

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

template <class T>
ESPALIER_HD inline T blended(double share, double from, T to) {
  return static_cast<T>((1 - share) * static_cast<double>(to) + share * from);
}

template <class Space>
void clip_to_norm(const Space& space, double most, std::vector<Matrix<float, Space>>& matrices,
                  Array<Space, double>& scratch) {
  const auto pieces_of = [](const auto& matrix) {
    return (static_cast<std::int64_t>(matrix.data.size()) + kNormPiece - 1) / kNormPiece;
  };
  std::int64_t count = 0;
  for (const auto& matrix : matrices) count += pieces_of(matrix);
  scratch.resize(static_cast<std::size_t>(count + 1));
  double* sums = scratch.data();
  for (const auto& matrix : matrices) {
    const auto size = static_cast<std::int64_t>(matrix.data.size());
    const float* const values = matrix.data.data();
    double* const of_matrix = sums;
    for_each(space, "squares", pieces_of(matrix), [=] ESPALIER_DEVICE(std::int64_t piece) {
      of_matrix[piece] = squares_of_piece(values, size, piece);
    });
    sums += pieces_of(matrix);
  }
  const double* const pieces = scratch.data();
  double* const factor = sums;
  for_each(space, "clip_factor", 1,
           [=] ESPALIER_DEVICE(std::int64_t) { *factor = clip_factor(pieces, count, most); });
  for (auto& matrix : matrices) {
    float* const values = matrix.data.data();
    for_each(space, "clip_to_norm", static_cast<std::int64_t>(matrix.data.size()),
             [=] ESPALIER_DEVICE(std::int64_t k) { values[k] = scaled_by(*factor, values[k]); });
  }
}

template <class T, class Space>
void blend(const Space& space, double share, const Matrix<T, Space>& from, Matrix<T, Space>& to) {
  ESPALIER_CHECK(from.data.size() == to.data.size(), "{} elements and {}", from.data.size(), to.data.size());
  const T* const source = from.data.data();
  T* const target = to.data.data();
  for_each(space, "blend", static_cast<std::int64_t>(to.data.size()), [=] ESPALIER_DEVICE(std::int64_t k) {
    target[k] = blended(share, static_cast<double>(source[k]), target[k]);
  });
}

template <class T, class Space>
void weigh(const Space& space, double divisor, const Matrix<T, Space>& mean, Matrix<T, Space>& sum,
           Matrix<T, Space>& divisors, std::int64_t at) {
  sum.resize(mean.rows, mean.columns);
  const T* const source = mean.data.data();
  T *const target = sum.data.data(), *const divisor_of = divisors.data.data() + at;
  for_each(space, "weigh", static_cast<std::int64_t>(sum.data.size()), [=] ESPALIER_DEVICE(std::int64_t k) {
    target[k] = static_cast<T>(divisor * static_cast<double>(source[k]));
    if (k == 0) *divisor_of = static_cast<T>(divisor);
  });
}

template <class T, class Space>
void blend_mean(const Space& space, double share, const Matrix<T, Space>& sum,
                const Matrix<T, Space>& divisors, std::int64_t at, Matrix<T, Space>& to) {
  ESPALIER_CHECK(sum.data.size() == to.data.size(), "{} elements and {}", sum.data.size(), to.data.size());
  const T *const source = sum.data.data(), *const divisor_of = divisors.data.data() + at;
  T* const target = to.data.data();
  for_each(space, "blend_mean", static_cast<std::int64_t>(to.data.size()),
           [=] ESPALIER_DEVICE(std::int64_t k) {
             const auto divisor = static_cast<double>(*divisor_of);
             if (divisor > 0) target[k] = blended(share, static_cast<double>(source[k]) / divisor, target[k]);
           });
}

template void clip_to_norm(const Space&, double, std::vector<Matrix<float, Space>>&, Array<Space, double>&);

#define ESPALIER_INSTANTIATE(T)                                                                            \
  template void blend(const Space&, double, const Matrix<T, Space>&, Matrix<T, Space>&);                   \
  template void weigh(const Space&, double, const Matrix<T, Space>&, Matrix<T, Space>&, Matrix<T, Space>&, \
                      std::int64_t);                                                                       \
  template void blend_mean(const Space&, double, const Matrix<T, Space>&, const Matrix<T, Space>&,         \
                           std::int64_t, Matrix<T, Space>&);
ESPALIER_FOR_EACH_NUMBER(ESPALIER_INSTANTIATE)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
