// GraphSAGE (Hamilton, Ying, Leskovec: Inductive representation learning on large graphs, NeurIPS
// 2017): the mean of the neighbours, their sum (the same passes with another matrix), or their
// largest elements in the place of B X.
//
//     Z = X_d W_self + (B X) W_neighbour + b
//
//     X [columns, in]     the sources; its first `rows` rows X_d are the destinations
//     B [rows, columns]   the block; with values 1 / |picks|, B X is the mean over the
//                         sampled neighbours
//     W_self, W_neighbour [in, out], b [1, out], Z [rows, out]
//
// (W_self, W_neighbour side by side are the paper's W applied to the concatenation of a vertex and
// its neighbours' mean.)
#pragma once

#include "espalier/dense/gather_max.hpp"
#include "espalier/nn/layer.hpp"
#include "product_costs.hpp"

namespace espalier {

/// Z, resized. `product` receives B X [rows, in] when aggregating first, which backward reads, else
/// X W_neighbour.
template <class T, class Space>
void sage_forward(const Space& space, const BlockViewOn<Space>& block, ProductOrder order,
                  const InputOn<Space, T>& x, const MatrixOn<Space, T>& self,
                  const MatrixOn<Space, T>& neighbour, const MatrixOn<Space, T>& bias,
                  MatrixOn<Space, T>& product, MatrixOn<Space, T>& z) {
  z.resize(block.rows, self.columns);
  multiply_plus_row<T>(space, bias, x.first_rows(block.rows), self, z);
  if (order == ProductOrder::kMultiplyFirst) {
    product.resize(x.rows, neighbour.columns);
    multiply<T>(space, x, neighbour, product);
    spmm<T>(space, block, product, z, Update::kAccumulate);
  } else {
    product.resize(block.rows, x.columns);
    spmm<T>(space, block, x, product);
    gemm<T>(space, product, neighbour, z, Update::kAccumulate);
  }
}

/// Where products were aggregated first: dX, unless it is null, by way of `product`, [rows, in].
template <class T, class Space>
void sage_input_gradient(const Space& space, const BlockViewOn<Space>& transposed,
                         const MatrixOn<Space, T>& self, const MatrixOn<Space, T>& neighbour,
                         MatrixOn<Space, T>& product, const MatrixOn<Space, T>& dz, MatrixOn<Space, T>* dx) {
  if (dx == nullptr) return;
  gemm_nt<T>(space, dz, neighbour, product);  // d(B X) = dZ W_neighbour^T
  spmm<T>(space, transposed, product, *dx);
  gemm_nt<T>(space, dz, self, MatrixView<T, Space>(*dx).first_rows(dz.rows), Update::kAccumulate);
}

/// Overwrites the gradients of the weights and, unless `dx` is null, of X (resized to
/// [columns, in]):
///     dW_self = X_d^T dZ    dW_neighbour = (B X)^T dZ = X^T (B^T dZ)
///     dX      = B^T dZ W_neighbour^T, and its first rows += dZ W_self^T
/// `order`, `x` and `product` as in forward; `product` is overwritten. `transposed` = B^T is read
/// when multiplying first or when dx is asked for.
template <class T, class Space>
void sage_backward(const Space& space, const BlockViewOn<Space>& block, const BlockViewOn<Space>& transposed,
                   ProductOrder order, const InputOn<Space, T>& x, const MatrixOn<Space, T>& self,
                   const MatrixOn<Space, T>& neighbour, MatrixOn<Space, T>& product,
                   const MatrixOn<Space, T>& dz, MatrixOn<Space, T>& dself, MatrixOn<Space, T>& dneighbour,
                   MatrixOn<Space, T>* dx) {
  multiply_transposed<T>(space, x.first_rows(block.rows), dz, dself);
  if (dx != nullptr) dx->resize(block.columns, x.columns);
  if (order == ProductOrder::kMultiplyFirst) {
    spmm<T>(space, transposed, dz, product);  // d(X W_neighbour) = B^T dZ
    multiply_transposed<T>(space, x, product, dneighbour);
    if (dx != nullptr) gemm_nt<T>(space, product, neighbour, *dx);
  } else {
    gemm_tn<T>(space, product, dz, dneighbour);
    return sage_input_gradient<T>(space, transposed, self, neighbour, product, dz, dx);
  }
  if (dx != nullptr)
    gemm_nt<T>(space, dz, self, MatrixView<T, Space>(*dx).first_rows(block.rows), Update::kAccumulate);
}

// ---- Both products as one, on a GPU -------------------------------------------------------------
//
//     Z = [X_d | B X] [W_self; W_neighbour] + b
//
// cuBLAS writes Z once and has twice the depth to work on: 0.41 ms for 0.69 on an H100 (168 k rows,
// 100 numbers to 256, float32), less 0.05 for the copy of X_d.

/// Two matrices of which the second follows the first (TensorShape::follows), as one.
template <class T>
MatrixView<T, Cuda> stacked(MatrixView<T, Cuda> first, MatrixView<T, Cuda> second) {
  ESPALIER_CHECK(second.data == first.row(first.rows) && second.columns == first.columns,
                 "matrices of {} and {} rows are not one", first.rows, second.rows);
  return {first.rows + second.rows, first.columns, first.data};
}

/// Z as above; `joined` becomes [X_d | B X].
inline void sage_forward_joined(const Cuda& cuda, const BlockView<Cuda>& block,
                                ConstMatrixView<float, Cuda> x, const Matrix<float, Cuda>& self,
                                const Matrix<float, Cuda>& neighbour, const Matrix<float, Cuda>& bias,
                                Matrix<float, Cuda>& joined, Matrix<float, Cuda>& z) {
  joined.resize(block.rows, 2 * x.columns);
  spmm_beside_rows<float>(cuda, block, x, joined);
  z.resize(block.rows, self.columns);
  gemm_plus_row<float>(cuda, bias, joined, stacked<const float>(self, neighbour), z);
}

template <class T, class Space>
class SageLayer final : public Layer<T, Space> {
  using M = Matrix<T, Space>;
  using Tensors = typename Layer<T, Space>::Tensors;

 public:
  explicit SageLayer(const LayerShape& shape) : shape_(shape), takes_largest_(shape.aggregator == "max") {}

  void forward(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
               Tensors weights, const KeyedStream&, M& z) override {
    const M &self = weights[0].value, &neighbour = weights[1].value, &bias = weights[2].value;
    if (takes_largest_) return apply_to_largest(space, block, x, weights, product_, winners_, z);
    if constexpr (kOnGpu)
      if (joins(space, block, x))
        return sage_forward_joined(space, block, x, self, neighbour, bias, product_, z);
    sage_forward<T>(space, block, order_of(block), x, self, neighbour, bias, product_, z);
  }

  void backward(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
                Tensors weights, const M& dz, LayerScratch<T, Space>& scratch, std::span<M> gradients,
                M* dx) override {
    if (takes_largest_) return backward_of_largest(space, block, x, weights, dz, scratch, gradients, dx);
    const M &self = weights[0].value, &neighbour = weights[1].value;
    const ProductOrder order = order_of(block);
    BlockView<Space> transposed;
    if (dx != nullptr || order == ProductOrder::kMultiplyFirst)
      transposed = transposed_of(space, block, scratch);
    if constexpr (kOnGpu)
      if (joins(space, block, x)) {
        gemm_tn<T>(space, product_, dz, stacked<T>(gradients[0], gradients[1]));
        product_.resize(block.rows, x.columns);
        if (dx != nullptr) dx->resize(block.columns, x.columns);
        return sage_input_gradient<T>(space, transposed, self, neighbour, product_, dz, dx);
      }
    sage_backward<T>(space, block, transposed, order, x, self, neighbour, product_, dz, gradients[0],
                     gradients[1], dx);
  }

  void evaluate(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
                Tensors weights, LayerScratch<T, Space>& scratch, M& z) const override {
    M& product = scratch.matrices[0];
    if (takes_largest_) return apply_to_largest(space, block, x, weights, product, scratch.winners, z);
    sage_forward<T>(space, block, evaluation_order(shape_), x, weights[0].value, weights[1].value,
                    weights[2].value, product, z);
  }

 private:
  ProductOrder order_of(const BlockView<Space>& block) const { return training_order(shape_, block); }

  static constexpr bool kOnGpu = std::is_same_v<Space, Cuda>;
  bool joins(const Space& space, const BlockView<Space>& block,
             const LayerInput<T, Space>& x) const requires kOnGpu {
    return order_of(block) == ProductOrder::kAggregateFirst && x.entries == nullptr &&
           space.sparse_products() == SparseProducts::kOwn;
  }

  // Z = X_d W_self + max(X_u) W_neighbour + b
  void apply_to_largest(const Space& space, const BlockView<Space>& block, ConstMatrixView<T, Space> x,
                        Tensors weights, M& largest, Array<Space, std::int32_t>& winners, M& z) const {
    largest.resize(block.rows, x.columns);
    gather_max<T>(space, block, x, largest, winners);
    z.resize(block.rows, shape_.out);
    gemm_plus_row<T>(space, weights[2].value, x.first_rows(block.rows), weights[0].value, z);
    gemm<T>(space, largest, weights[1].value, z, Update::kAccumulate);
  }

  void backward_of_largest(const Space& space, const BlockView<Space>& block, ConstMatrixView<T, Space> x,
                           Tensors weights, const M& dz, LayerScratch<T, Space>& scratch,
                           std::span<M> gradients, M* dx) {
    gemm_tn<T>(space, x.first_rows(block.rows), dz, gradients[0]);
    gemm_tn<T>(space, product_, dz, gradients[1]);
    if (dx == nullptr) return;
    transpose(space, block, scratch.transposed, &scratch.positions);
    gemm_nt<T>(space, dz, weights[1].value, product_);  // by the largest
    dx->resize(block.columns, x.columns);
    gather_max_backward<T>(space, scratch.transposed, scratch.positions, winners_, product_, *dx);
    gemm_nt<T>(space, dz, weights[0].value, MatrixView<T, Space>(*dx).first_rows(block.rows),
               Update::kAccumulate);
  }

  LayerShape shape_;
  bool takes_largest_;
  M product_;  ///< B X or the largest, X W where that is multiplied first; on a GPU also
               ///< [X_d | B X]
  Array<Space, std::int32_t> winners_;
};

inline std::vector<TensorShape> sage_tensors(const LayerShape& s) {
  return {{"self", s.in, s.out},
          {.name = "neighbour", .rows = s.in, .columns = s.out, .follows = true},
          {"bias", 1, s.out, Start::kZero}};
}

inline LayerCosts sage_costs(const LayerShape& s, const BlockSize& b) {
  if (s.aggregator != "max") return costs_of_products(s, b, 2 * b.rows * numbers(s));
  const double in = static_cast<double>(s.in), out = static_cast<double>(s.out), gathered = b.entries() * in,
               product = 4 * b.rows * numbers(s);
  const bool first = !s.gives_dx;
  return {.forward = {product, gathered, b.rows * out},
          .backward = {product * (first ? 1 : 2), first ? 0 : 2 * gathered, 2 * b.rows * out},
          .evaluation = {product, gathered, b.rows * out},
          .kept = {b.rows * in, b.rows * in},
          .scratch = {b.rows * in, b.rows * in},
          .transposes = !first,
          .keeps_positions = !first};
}

inline constexpr LayerKind kSage = {
    .name = "sage",
    .about = "GraphSAGE (Hamilton et al. 2017): X_v W_self + AGG(X_u) W_neighbour + b",
    .matrix =
        [](std::string_view aggregator) {
          return aggregator == "sum" ? MatrixForm::kSum : MatrixForm::kMean;
        },
    .takes_aggregator = true,
    .multiplies_block = true,
    .takes_entries = true,
    .tensors = sage_tensors,
    .costs = sage_costs};

}  // namespace espalier
