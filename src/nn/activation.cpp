#include "espalier/nn/activation.hpp"

#include "espalier/base/elementary.hpp"
#include "row_sum.hpp"

namespace espalier {

template <class T>
void elu(const Cpu& cpu, MatrixView<T> h) {
  const std::int64_t size = h.rows * h.columns;
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (size > 4096)
  for (std::int64_t e = 0; e < size; ++e)
    h.data[e] = h.data[e] > T{0} ? h.data[e] : expm1_of_nonpositive(h.data[e]);
}

template <class T>
void elu_backward(const Cpu& cpu, ConstMatrixView<T> h, T scale, MatrixView<T> gradient, Matrix<T>* sums) {
  const std::int64_t size = h.rows * h.columns;
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (size > 16384)
  for (std::int64_t e = 0; e < size; ++e)
    gradient.data[e] *= h.data[e] >= T{0} ? T{1} : h.data[e] / scale + T{1};
  if (sums != nullptr) sum_rows<T>(cpu, gradient, *sums);
}

#define ESPALIER_INSTANTIATE(T)                    \
  template void elu<T>(const Cpu&, MatrixView<T>); \
  template void elu_backward<T>(const Cpu&, ConstMatrixView<T>, T, MatrixView<T>, Matrix<T>*);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
