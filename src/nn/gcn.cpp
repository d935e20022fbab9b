#include "espalier/nn/gcn.hpp"

#include "espalier/dense/gemm.hpp"
#include "espalier/dense/spmm.hpp"
#include "row_sum.hpp"

namespace espalier {

template <class T>
void gcn_forward(const Cpu& cpu, const Block& block, Order order, ConstMatrixView<T> x,
                 GcnTensors<const Matrix<T>> weights, Matrix<T>& product, Matrix<T>& z) {
  z.resize(block.rows, weights.weight.columns);
  if (order == Order::kMultiplyFirst) {
    product.resize(x.rows, weights.weight.columns);
    gemm<T>(cpu, x, weights.weight, product);
    fill_rows<T>(cpu, weights.bias, z);
    spmm<T>(cpu, block, product, z, Update::kAccumulate);
  } else {
    if (order == Order::kAggregateFirst) {
      product.resize(block.rows, x.columns);
      spmm<T>(cpu, block, x, product);
    }
    gemm_plus_row<T>(cpu, weights.bias, product, weights.weight, z);
  }
}

template <class T>
void gcn_backward(const Cpu& cpu, const Block& transposed, Order order, ConstMatrixView<T> x,
                  GcnTensors<const Matrix<T>> weights, Matrix<T>& product, const Matrix<T>& dz,
                  GcnTensors<Matrix<T>> gradients, Matrix<T>* dx) {
  sum_rows<T>(cpu, dz, gradients.bias);
  if (dx != nullptr) dx->resize(x.rows, x.columns);
  if (order == Order::kMultiplyFirst) {
    spmm<T>(cpu, transposed, dz, product);  // d(X W) = B^T dZ
    gemm_tn<T>(cpu, x, product, gradients.weight);
    if (dx != nullptr) gemm_nt<T>(cpu, product, weights.weight, *dx);
  } else {
    gemm_tn<T>(cpu, product, dz, gradients.weight);
    if (dx == nullptr) return;
    gemm_nt<T>(cpu, dz, weights.weight, product);  // d(B X) = dZ W^T
    spmm<T>(cpu, transposed, product, *dx);
  }
}

#define ESPALIER_INSTANTIATE(T)                                                            \
  template void gcn_forward<T>(const Cpu&, const Block&, Order, ConstMatrixView<T>,        \
                               GcnTensors<const Matrix<T>>, Matrix<T>&, Matrix<T>&);       \
  template void gcn_backward<T>(const Cpu&, const Block&, Order, ConstMatrixView<T>,       \
                                GcnTensors<const Matrix<T>>, Matrix<T>&, const Matrix<T>&, \
                                GcnTensors<Matrix<T>>, Matrix<T>*);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)

}  // namespace espalier
