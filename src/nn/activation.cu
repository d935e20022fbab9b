#include "espalier/nn/activation.hpp"

#include "device_row_sum.hpp"
#include "espalier/base/elementary.hpp"

namespace espalier {

template <class T>
void elu(const Cuda& cuda, MatrixView<T, Cuda> h) {
  for_each(cuda, "elu", h.rows * h.columns, [=] __device__(std::int64_t e) {
    const T x = h.data[e];
    h.data[e] = x > 0 ? x : expm1_of_nonpositive(x);
  });
}

template <class T>
void elu_backward(const Cuda& cuda, ConstMatrixView<T, Cuda> h, T scale, MatrixView<T, Cuda> gradient,
                  Matrix<T, Cuda>* sums) {
  update_and_sum(cuda, gradient, sums, [=] __device__(std::int64_t i, std::int64_t j, float d) {
    const T y = h(i, j);
    return d * (y >= 0 ? T{1} : y / scale + T{1});
  });
}

template void elu<float>(const Cuda&, MatrixView<float, Cuda>);
template void elu_backward<float>(const Cuda&, ConstMatrixView<float, Cuda>, float, MatrixView<float, Cuda>,
                                  Matrix<float, Cuda>*);

}  // namespace espalier
