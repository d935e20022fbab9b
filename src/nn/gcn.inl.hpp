// The graph convolution of Kipf and Welling (Semi-supervised classification with graph
// convolutional networks, ICLR 2017).
//
//     Z = B X W + b
//
//     X [columns, in] the sources, B [rows, columns] the block: rows of the normalised adjacency
//     matrix with self entries, or an unbiased estimate of them; W [in, out], b [1, out],
//     Z [rows, out]
#pragma once

#include "espalier/nn/layer.hpp"
#include "product_costs.hpp"

namespace espalier {

/// Z, resized. `product` receives B X [rows, in] when aggregating first, which backward reads, else
/// X W.
template <class T, class Space>
void gcn_forward(const Space& space, const BlockViewOn<Space>& block, ProductOrder order,
                 const InputOn<Space, T>& x, const MatrixOn<Space, T>& weight, const MatrixOn<Space, T>& bias,
                 MatrixOn<Space, T>& product, MatrixOn<Space, T>& z) {
  z.resize(block.rows, weight.columns);
  if (order == ProductOrder::kMultiplyFirst) {
    product.resize(x.rows, weight.columns);
    multiply<T>(space, x, weight, product);
    fill_rows<T>(space, bias, z);
    spmm<T>(space, block, product, z, Update::kAccumulate);
  } else {
    product.resize(block.rows, x.columns);
    spmm<T>(space, block, x, product);
    gemm_plus_row<T>(space, bias, product, weight, z);
  }
}

/// Overwrites the gradient of W and, unless `dx` is null, of X (resized to [columns, in]):
///     dW = (B X)^T dZ = X^T (B^T dZ)      dX = B^T dZ W^T
/// `order`, `x` and `product` as in forward; `product` is overwritten. `transposed` = B^T is read
/// when multiplying first or when dx is asked for.
template <class T, class Space>
void gcn_backward(const Space& space, const BlockViewOn<Space>& transposed, ProductOrder order,
                  const InputOn<Space, T>& x, const MatrixOn<Space, T>& weight, MatrixOn<Space, T>& product,
                  const MatrixOn<Space, T>& dz, MatrixOn<Space, T>& dweight, MatrixOn<Space, T>* dx) {
  if (dx != nullptr) dx->resize(transposed.rows, x.columns);
  if (order == ProductOrder::kMultiplyFirst) {
    spmm<T>(space, transposed, dz, product);  // d(X W) = B^T dZ
    multiply_transposed<T>(space, x, product, dweight);
    if (dx != nullptr) gemm_nt<T>(space, product, weight, *dx);
  } else {
    gemm_tn<T>(space, product, dz, dweight);
    if (dx == nullptr) return;
    gemm_nt<T>(space, dz, weight, product);  // d(B X) = dZ W^T
    spmm<T>(space, transposed, product, *dx);
  }
}

template <class T, class Space>
class GcnLayer final : public Layer<T, Space> {
  using M = Matrix<T, Space>;
  using Tensors = typename Layer<T, Space>::Tensors;

 public:
  explicit GcnLayer(const LayerShape& shape) : shape_(shape) {}

  void forward(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
               Tensors weights, const KeyedStream&, M& z) override {
    gcn_forward<T>(space, block, order_of(block), x, weights[0].value, weights[1].value, product_, z);
  }

  void backward(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
                Tensors weights, const M& dz, LayerScratch<T, Space>& scratch, std::span<M> gradients,
                M* dx) override {
    const ProductOrder order = order_of(block);
    BlockView<Space> transposed;
    if (dx != nullptr || order == ProductOrder::kMultiplyFirst)
      transposed = transposed_of(space, block, scratch);
    gcn_backward<T>(space, transposed, order, x, weights[0].value, product_, dz, gradients[0], dx);
  }

  void evaluate(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
                Tensors weights, LayerScratch<T, Space>& scratch, M& z) const override {
    gcn_forward<T>(space, block, evaluation_order(shape_), x, weights[0].value, weights[1].value,
                   scratch.matrices[0], z);
  }

 private:
  ProductOrder order_of(const BlockView<Space>& block) const { return training_order(shape_, block); }

  LayerShape shape_;
  M product_;  ///< B X, or X W where that is multiplied first
};

inline std::vector<TensorShape> gcn_tensors(const LayerShape& s) {
  return {{"weight", s.in, s.out}, {"bias", 1, s.out, Start::kZero}};
}

inline LayerCosts gcn_costs(const LayerShape& s, const BlockSize& b) {
  return costs_of_products(s, b, 0);
}

// Kipf and Welling drop input features as well; GraphSAGE's authors do not.
inline constexpr LayerKind kGcn = {
    .name = "gcn",
    .about = "graph convolution (Kipf and Welling 2017): (D^-1/2 (A + I) D^-1/2 X) W + b",
    .matrix = [](std::string_view) { return MatrixForm::kNormalized; },
    .drops_input = true,
    .multiplies_block = true,
    .takes_entries = true,
    .tensors = gcn_tensors,
    .costs = gcn_costs};

}  // namespace espalier
