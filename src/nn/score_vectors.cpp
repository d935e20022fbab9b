#include "score_vectors.hpp"

#include <algorithm>

namespace espalier {

template <class T>
void score_vectors_backward(const Cpu& cpu, ConstMatrixView<T> w, ConstMatrixView<T> a, ConstMatrixView<T> du,
                            MatrixView<T> dw, MatrixView<T> da) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (w.rows > 1024)
  for (std::int64_t p = 0; p < du.rows; ++p) {
    std::fill_n(da.row(p), da.columns, T{0});
    for (std::int64_t i = 0; i < du.columns; ++i) {
      const T by = du(p, i);
      const T *const from = w.row(p * du.columns + i), *const vector = a.row(p);
      T *const to = dw.row(p * du.columns + i), *const sum = da.row(p);
      for (std::int64_t c = 0; c < da.columns; ++c) {
        sum[c] += by * from[c];
        to[c] += by * vector[c];
      }
    }
  }
}

#define ESPALIER_INSTANTIATE(T)                                                               \
  template void score_vectors_backward<T>(const Cpu&, ConstMatrixView<T>, ConstMatrixView<T>, \
                                          ConstMatrixView<T>, MatrixView<T>, MatrixView<T>);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
