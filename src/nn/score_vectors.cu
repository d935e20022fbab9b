#include "score_vectors.hpp"

#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

template <class T>
void score_vectors_backward(const Cuda& cuda, ConstMatrixView<T, Cuda> w, ConstMatrixView<T, Cuda> a,
                            ConstMatrixView<T, Cuda> du, MatrixView<T, Cuda> dw, MatrixView<T, Cuda> da) {
  const std::int64_t in = du.columns;
  for_each_in_rows(cuda, "score_vectors_backward", da.rows, da.columns,
                   [=] __device__(std::int64_t p, std::int64_t c) {
                     T sum = 0;
                     for (std::int64_t i = 0; i < in; ++i) {
                       sum += du(p, i) * w(p * in + i, c);
                       dw(p * in + i, c) += du(p, i) * a(p, c);
                     }
                     da(p, c) = sum;
                   });
}

template void score_vectors_backward<float>(const Cuda&, ConstMatrixView<float, Cuda>,
                                            ConstMatrixView<float, Cuda>, ConstMatrixView<float, Cuda>,
                                            MatrixView<float, Cuda>, MatrixView<float, Cuda>);

}  // namespace espalier
