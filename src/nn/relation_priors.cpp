#include "relation_priors.hpp"

namespace espalier {

template <class T>
void scale_matrices(const Cpu& cpu, const Matrix<T>& w, const Matrix<T>& mu, T factor, Matrix<T>& scaled) {
  scaled.resize(w.rows, w.columns);
  const std::int64_t size = w.columns * w.columns;
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (w.rows > 1024)
  for (std::int64_t p = 0; p < w.rows / w.columns; ++p)
    for (auto e = p * size; e < (p + 1) * size; ++e)
      scaled.data[e] = factor * mu.data[static_cast<std::size_t>(p)] * w.data[e];
}

template <class T>
void scale_matrices_backward(const Cpu& cpu, const Matrix<T>& w, const Matrix<T>& mu, T factor,
                             Matrix<T>& dscaled, Matrix<T>& dmu) {
  const std::int64_t size = w.columns * w.columns;
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (w.rows > 1024)
  for (std::int64_t p = 0; p < w.rows / w.columns; ++p) {
    T sum = 0;
    for (auto e = p * size; e < (p + 1) * size; ++e) {
      sum += w.data[e] * dscaled.data[e];
      dscaled.data[e] *= factor * mu.data[static_cast<std::size_t>(p)];
    }
    dmu.data[static_cast<std::size_t>(p)] = factor * sum;
  }
}

#define ESPALIER_INSTANTIATE(T)                                                                           \
  template void scale_matrices<T>(const Cpu&, const Matrix<T>&, const Matrix<T>&, T, Matrix<T>&);         \
  template void scale_matrices_backward<T>(const Cpu&, const Matrix<T>&, const Matrix<T>&, T, Matrix<T>&, \
                                           Matrix<T>&);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
