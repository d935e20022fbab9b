// The passes of GCN (espalier/nn/gcn.hpp), composed of leaves that every space has, and the layer
// that they make.
#pragma once

#include "espalier/nn/gcn.hpp"
#include "espalier/nn/layer.hpp"
#include "input_products.hpp"
#include "product_costs.hpp"

namespace espalier {

template <class T, class Space>
void gcn_forward(const Space& space, const BlockViewOn<Space>& block, ProductOrder order,
                 const InputOn<Space, T>& x, GcnTensors<const MatrixOn<Space, T>> weights,
                 MatrixOn<Space, T>& product, MatrixOn<Space, T>& z) {
  z.resize(block.rows, weights.weight.columns);
  if (order == ProductOrder::kMultiplyFirst) {
    product.resize(x.rows, weights.weight.columns);
    multiply<T>(space, x, weights.weight, product);
    fill_rows<T>(space, weights.bias, z);
    spmm<T>(space, block, product, z, Update::kAccumulate);
  } else {
    product.resize(block.rows, x.columns);
    spmm<T>(space, block, x, product);
    gemm_plus_row<T>(space, weights.bias, product, weights.weight, z);
  }
}

template <class T, class Space>
void gcn_backward(const Space& space, const BlockViewOn<Space>& transposed, ProductOrder order,
                  const InputOn<Space, T>& x, GcnTensors<const MatrixOn<Space, T>> weights,
                  MatrixOn<Space, T>& product, const MatrixOn<Space, T>& dz, MatrixOn<Space, T>& dweight,
                  MatrixOn<Space, T>* dx) {
  if (dx != nullptr) dx->resize(transposed.rows, x.columns);
  if (order == ProductOrder::kMultiplyFirst) {
    spmm<T>(space, transposed, dz, product);  // d(X W) = B^T dZ
    multiply_transposed<T>(space, x, product, dweight);
    if (dx != nullptr) gemm_nt<T>(space, product, weights.weight, *dx);
  } else {
    gemm_tn<T>(space, product, dz, dweight);
    if (dx == nullptr) return;
    gemm_nt<T>(space, dz, weights.weight, product);  // d(B X) = dZ W^T
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
               Tensors weights, const RandomStream&, M& z) override {
    gcn_forward<T>(space, block, order_of(block), x, tensors(weights), product_, z);
  }

  void backward(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
                Tensors weights, const M& dz, LayerScratch<T, Space>& scratch, std::span<M> gradients,
                M* dx) override {
    const ProductOrder order = order_of(block);
    if (dx != nullptr || order == ProductOrder::kMultiplyFirst) transpose(space, block, scratch.transposed);
    gcn_backward<T>(space, scratch.transposed, order, x, tensors(weights), product_, dz, gradients[0], dx);
  }

  void evaluate(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
                Tensors weights, LayerScratch<T, Space>& scratch, M& z) const override {
    gcn_forward<T>(space, block, evaluation_order(shape_), x, tensors(weights), scratch.matrices[0], z);
  }

 private:
  static GcnTensors<const M> tensors(Tensors weights) { return {weights[0].value, weights[1].value}; }
  ProductOrder order_of(const BlockView<Space>& block) const { return training_order(shape_, block); }

  LayerShape shape_;
  M product_;  ///< B X, or X W where that is multiplied first
};

inline MatrixForm gcn_matrix(std::string_view) {
  return MatrixForm::kNormalized;
}

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
    .matrix = gcn_matrix,
    .drops_input = true,
    .activation = "relu",
    .takes_heads = false,
    .drops_attention = false,
    .takes_edges = false,
    .takes_aggregator = false,
    .multiplies_block = true,
    .takes_relations = false,
    .takes_bases = false,
    .takes_entries = true,
    .tensors = gcn_tensors,
    .costs = gcn_costs};

#define ESPALIER_INSTANTIATE_GCN(T, Space)                                                              \
  template void gcn_forward<T, Space>(const Space&, const BlockView<Space>&, ProductOrder,              \
                                      const LayerInput<T, Space>&, GcnTensors<const Matrix<T, Space>>,  \
                                      Matrix<T, Space>&, Matrix<T, Space>&);                            \
  template void gcn_backward<T, Space>(const Space&, const BlockView<Space>&, ProductOrder,             \
                                       const LayerInput<T, Space>&, GcnTensors<const Matrix<T, Space>>, \
                                       Matrix<T, Space>&, const Matrix<T, Space>&, Matrix<T, Space>&,   \
                                       Matrix<T, Space>*);

}  // namespace espalier
