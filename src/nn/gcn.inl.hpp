// The passes of GCN (espalier/nn/gcn.hpp), composed of leaves that every space has.
#pragma once

#include "espalier/dense/gemm.hpp"
#include "espalier/dense/spmm.hpp"
#include "espalier/nn/gcn.hpp"
#include "row_sum.hpp"

namespace espalier {

template <class T, class Space>
void gcn_forward(const Space& space, const BlockViewOn<Space>& block, Order order, ConstViewOn<Space, T> x,
                 GcnTensors<const MatrixOn<Space, T>> weights, MatrixOn<Space, T>& product,
                 MatrixOn<Space, T>& z) {
  z.resize(block.rows, weights.weight.columns);
  if (order == Order::kMultiplyFirst) {
    product.resize(x.rows, weights.weight.columns);
    gemm<T>(space, x, weights.weight, product);
    fill_rows<T>(space, weights.bias, z);
    spmm<T>(space, block, product, z, Update::kAccumulate);
  } else {
    if (order == Order::kAggregateFirst) {
      product.resize(block.rows, x.columns);
      spmm<T>(space, block, x, product);
    }
    gemm_plus_row<T>(space, weights.bias, product, weights.weight, z);
  }
}

template <class T, class Space>
void gcn_backward(const Space& space, const BlockViewOn<Space>& transposed, Order order,
                  ConstViewOn<Space, T> x, GcnTensors<const MatrixOn<Space, T>> weights,
                  MatrixOn<Space, T>& product, const MatrixOn<Space, T>& dz,
                  GcnTensors<MatrixOn<Space, T>> gradients, MatrixOn<Space, T>* dx) {
  sum_rows<T>(space, dz, gradients.bias);
  if (dx != nullptr) dx->resize(x.rows, x.columns);
  if (order == Order::kMultiplyFirst) {
    spmm<T>(space, transposed, dz, product);  // d(X W) = B^T dZ
    gemm_tn<T>(space, x, product, gradients.weight);
    if (dx != nullptr) gemm_nt<T>(space, product, weights.weight, *dx);
  } else {
    gemm_tn<T>(space, product, dz, gradients.weight);
    if (dx == nullptr) return;
    gemm_nt<T>(space, dz, weights.weight, product);  // d(B X) = dZ W^T
    spmm<T>(space, transposed, product, *dx);
  }
}

#define ESPALIER_INSTANTIATE_GCN(T, Space)                                                            \
  template void gcn_forward<T, Space>(const Space&, const BlockView<Space>&, Order,                   \
                                      ConstMatrixView<T, Space>, GcnTensors<const Matrix<T, Space>>,  \
                                      Matrix<T, Space>&, Matrix<T, Space>&);                          \
  template void gcn_backward<T, Space>(const Space&, const BlockView<Space>&, Order,                  \
                                       ConstMatrixView<T, Space>, GcnTensors<const Matrix<T, Space>>, \
                                       Matrix<T, Space>&, const Matrix<T, Space>&,                    \
                                       GcnTensors<Matrix<T, Space>>, Matrix<T, Space>*);

}  // namespace espalier
