#include "relation_priors.hpp"

#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

template <class T>
void scale_matrices(const Cuda& cuda, const Matrix<T, Cuda>& w, const Matrix<T, Cuda>& mu, T factor,
                    Matrix<T, Cuda>& scaled) {
  scaled.resize(w.rows, w.columns);
  const T *const from = w.data.data(), *const prior = mu.data.data();
  T* const to = scaled.data.data();
  const std::int64_t size = w.columns * w.columns;
  for_each_in_rows(cuda, "scale_matrices", w.rows / w.columns, size,
                   [=] __device__(std::int64_t p, std::int64_t e) {
                     to[p * size + e] = factor * prior[p] * from[p * size + e];
                   });
}

template <class T>
void scale_matrices_backward(const Cuda& cuda, const Matrix<T, Cuda>& w, const Matrix<T, Cuda>& mu, T factor,
                             Matrix<T, Cuda>& dscaled, Matrix<T, Cuda>& dmu) {
  const T *const from = w.data.data(), *const prior = mu.data.data();
  T *const gradient = dscaled.data.data(), *const of_prior = dmu.data.data();
  const std::int64_t size = w.columns * w.columns, parts = w.rows / w.columns;
  for_each(cuda, "gradients_of_priors", parts, [=] __device__(std::int64_t p) {
    T sum = 0;
    for (auto e = p * size; e < (p + 1) * size; ++e) sum += from[e] * gradient[e];
    of_prior[p] = factor * sum;
  });
  for_each_in_rows(
      cuda, "scale_matrices_backward", parts, size,
      [=] __device__(std::int64_t p, std::int64_t e) { gradient[p * size + e] *= factor * prior[p]; });
}

template void scale_matrices<float>(const Cuda&, const Matrix<float, Cuda>&, const Matrix<float, Cuda>&,
                                    float, Matrix<float, Cuda>&);
template void scale_matrices_backward<float>(const Cuda&, const Matrix<float, Cuda>&,
                                             const Matrix<float, Cuda>&, float, Matrix<float, Cuda>&,
                                             Matrix<float, Cuda>&);

}  // namespace espalier
