// The passes of GraphSAGE (espalier/nn/sage.hpp), composed of leaves that every space has.
#pragma once

#include "espalier/dense/gemm.hpp"
#include "espalier/dense/spmm.hpp"
#include "espalier/nn/sage.hpp"
#include "row_sum.hpp"

namespace espalier {

template <class T, class Space>
void sage_forward(const Space& space, const BlockViewOn<Space>& block, Order order, ConstViewOn<Space, T> x,
                  SageTensors<const MatrixOn<Space, T>> weights, MatrixOn<Space, T>& product,
                  MatrixOn<Space, T>& z) {
  z.resize(block.rows, weights.self.columns);
  gemm_plus_row<T>(space, weights.bias, x.first_rows(block.rows), weights.self, z);
  if (order == Order::kMultiplyFirst) {
    product.resize(x.rows, weights.neighbour.columns);
    gemm<T>(space, x, weights.neighbour, product);
    spmm<T>(space, block, product, z, Update::kAccumulate);
  } else {
    if (order == Order::kAggregateFirst) {
      product.resize(block.rows, x.columns);
      spmm<T>(space, block, x, product);
    }
    gemm<T>(space, product, weights.neighbour, z, Update::kAccumulate);
  }
}

template <class T, class Space>
void sage_backward(const Space& space, const BlockViewOn<Space>& block, const BlockViewOn<Space>& transposed,
                   Order order, ConstViewOn<Space, T> x, SageTensors<const MatrixOn<Space, T>> weights,
                   MatrixOn<Space, T>& product, const MatrixOn<Space, T>& dz,
                   SageTensors<MatrixOn<Space, T>> gradients, MatrixOn<Space, T>* dx) {
  gemm_tn<T>(space, x.first_rows(block.rows), dz, gradients.self);
  sum_rows<T>(space, dz, gradients.bias);
  if (dx != nullptr) dx->resize(x.rows, x.columns);
  if (order == Order::kMultiplyFirst) {
    spmm<T>(space, transposed, dz, product);  // d(X W_neighbour) = B^T dZ
    gemm_tn<T>(space, x, product, gradients.neighbour);
    if (dx != nullptr) gemm_nt<T>(space, product, weights.neighbour, *dx);
  } else {
    gemm_tn<T>(space, product, dz, gradients.neighbour);
    if (dx != nullptr) {
      gemm_nt<T>(space, dz, weights.neighbour, product);  // d(B X) = dZ W_neighbour^T
      spmm<T>(space, transposed, product, *dx);
    }
  }
  if (dx != nullptr)
    gemm_nt<T>(space, dz, weights.self, MatrixView<T, Space>(*dx).first_rows(block.rows),
               Update::kAccumulate);
}

#define ESPALIER_INSTANTIATE_SAGE(T, Space)                                                             \
  template void sage_forward<T, Space>(const Space&, const BlockView<Space>&, Order,                    \
                                       ConstMatrixView<T, Space>, SageTensors<const Matrix<T, Space>>,  \
                                       Matrix<T, Space>&, Matrix<T, Space>&);                           \
  template void sage_backward<T, Space>(                                                                \
      const Space&, const BlockView<Space>&, const BlockView<Space>&, Order, ConstMatrixView<T, Space>, \
      SageTensors<const Matrix<T, Space>>, Matrix<T, Space>&, const Matrix<T, Space>&,                  \
      SageTensors<Matrix<T, Space>>, Matrix<T, Space>*);

}  // namespace espalier
