#include "espalier/nn/sage.hpp"

#include "espalier/dense/gemm.hpp"
#include "espalier/dense/spmm.hpp"
#include "row_sum.hpp"

namespace espalier {

template <class T>
void sage_forward(const Cpu& cpu, const Block& block, Order order, ConstMatrixView<T> x,
                  SageTensors<const Matrix<T>> weights, Matrix<T>& product, Matrix<T>& z) {
  z.resize(block.rows, weights.self.columns);
  gemm_plus_row<T>(cpu, weights.bias, x.first_rows(block.rows), weights.self, z);
  if (order == Order::kMultiplyFirst) {
    product.resize(x.rows, weights.neighbour.columns);
    gemm<T>(cpu, x, weights.neighbour, product);
    spmm<T>(cpu, block, product, z, Update::kAccumulate);
  } else {
    if (order == Order::kAggregateFirst) {
      product.resize(block.rows, x.columns);
      spmm<T>(cpu, block, x, product);
    }
    gemm<T>(cpu, product, weights.neighbour, z, Update::kAccumulate);
  }
}

template <class T>
void sage_backward(const Cpu& cpu, const Block& block, const Block& transposed, Order order,
                   ConstMatrixView<T> x, SageTensors<const Matrix<T>> weights, Matrix<T>& product,
                   const Matrix<T>& dz, SageTensors<Matrix<T>> gradients, Matrix<T>* dx) {
  gemm_tn<T>(cpu, x.first_rows(block.rows), dz, gradients.self);
  sum_rows<T>(cpu, dz, gradients.bias);
  if (dx != nullptr) dx->resize(x.rows, x.columns);
  if (order == Order::kMultiplyFirst) {
    spmm<T>(cpu, transposed, dz, product);  // d(X W_neighbour) = B^T dZ
    gemm_tn<T>(cpu, x, product, gradients.neighbour);
    if (dx != nullptr) gemm_nt<T>(cpu, product, weights.neighbour, *dx);
  } else {
    gemm_tn<T>(cpu, product, dz, gradients.neighbour);
    if (dx != nullptr) {
      gemm_nt<T>(cpu, dz, weights.neighbour, product);  // d(B X) = dZ W_neighbour^T
      spmm<T>(cpu, transposed, product, *dx);
    }
  }
  if (dx != nullptr)
    gemm_nt<T>(cpu, dz, weights.self, MatrixView<T>(*dx).first_rows(block.rows), Update::kAccumulate);
}

#define ESPALIER_INSTANTIATE(T)                                                                     \
  template void sage_forward<T>(const Cpu&, const Block&, Order, ConstMatrixView<T>,                \
                                SageTensors<const Matrix<T>>, Matrix<T>&, Matrix<T>&);              \
  template void sage_backward<T>(const Cpu&, const Block&, const Block&, Order, ConstMatrixView<T>, \
                                 SageTensors<const Matrix<T>>, Matrix<T>&, const Matrix<T>&,        \
                                 SageTensors<Matrix<T>>, Matrix<T>*);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)

}  // namespace espalier
