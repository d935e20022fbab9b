#include "gelu.hpp"

namespace espalier {

template <class T>
void gelu(const Cpu& cpu, const Matrix<T>& x, Matrix<T>& y) {
  y.resize(x.rows, x.columns);
  const auto size = x.rows * x.columns;
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (size > 65536)
  for (std::int64_t e = 0; e < size; ++e) y.data[e] = x.data[e] * normal_distribution(x.data[e]);
}

template <class T>
void gelu_backward(const Cpu& cpu, const Matrix<T>& x, Matrix<T>& dy) {
  const auto size = x.rows * x.columns;
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (size > 65536)
  for (std::int64_t e = 0; e < size; ++e)
    dy.data[e] *= normal_distribution(x.data[e]) + x.data[e] * normal_density(x.data[e]);
}

template void gelu<float>(const Cpu&, const Matrix<float>&, Matrix<float>&);
template void gelu<double>(const Cpu&, const Matrix<double>&, Matrix<double>&);
template void gelu_backward<float>(const Cpu&, const Matrix<float>&, Matrix<float>&);
template void gelu_backward<double>(const Cpu&, const Matrix<double>&, Matrix<double>&);

}  // namespace espalier
