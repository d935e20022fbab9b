// The graph isomorphism layer of Xu et al. (How powerful are graph neural networks?, ICLR 2019):
//
//     Y = (1 + eps) X_d + B X          B: rows of A, or unbiased estimates of them
//     Z = relu(Y W_1 + b_1) W_2 + b_2
//
// eps is learnt and begins as 0; the inner layer is as wide as the output.
#pragma once

#include "espalier/dense/gemm.hpp"
#include "espalier/dense/spmm.hpp"
#include "espalier/nn/dropout.hpp"
#include "espalier/nn/layer.hpp"
#include "espalier/nn/own_rows.hpp"
#include "espalier/sparse/transpose.hpp"
#include "product_costs.hpp"

namespace espalier {

template <class T, class Space>
class GinLayer final : public Layer<T, Space> {
  using M = Matrix<T, Space>;
  using Tensors = typename Layer<T, Space>::Tensors;

 public:
  explicit GinLayer(const LayerShape& shape) : shape_(shape) {}

  void forward(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
               Tensors weights, const KeyedStream&, M& z) override {
    run(space, block, x, weights, sum_, inner_, z);
  }

  void backward(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
                Tensors weights, const M& dz, LayerScratch<T, Space>& scratch, std::span<M> gradients,
                M* dx) override {
    auto& [dinner, dsum, unused, unused_too, last] = scratch.matrices;
    gemm_tn<T>(space, inner_, dz, gradients[kWeight2]);
    dinner.resize(dz.rows, shape_.out);
    gemm_nt<T>(space, dz, weights[kWeight2].value, dinner);
    relu_dropout_backward<T>(space, 0.0, inner_, dinner, &gradients[kBias1]);
    gemm_tn<T>(space, sum_, dinner, gradients[kWeight1]);
    dsum.resize(dz.rows, shape_.in);
    gemm_nt<T>(space, dinner, weights[kWeight1].value, dsum);
    product_of_own_rows<T>(space, dsum, x.first_rows(block.rows), gradients[kEps]);
    if (dx == nullptr) return;
    dx->resize(block.columns, x.columns);
    spmm<T>(space, transposed_of(space, block, scratch), dsum, *dx);
    add_own_rows<T>(space, weights[kEps].value, dsum, MatrixView<T, Space>(*dx).first_rows(block.rows));
  }

  void evaluate(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
                Tensors weights, LayerScratch<T, Space>& scratch, M& z) const override {
    run(space, block, x, weights, scratch.matrices[0], scratch.matrices[1], z);
  }

 private:
  static constexpr int kEps = 0, kWeight1 = 1, kBias1 = 2, kWeight2 = 3, kBias2 = 4;

  static void run(const Space& space, const BlockView<Space>& block, ConstMatrixView<T, Space> x,
                  Tensors weights, M& sum, M& inner, M& z) {
    sum.resize(block.rows, x.columns);
    spmm<T>(space, block, x, sum);
    add_own_rows<T>(space, weights[kEps].value, x.first_rows(block.rows), sum);
    inner.resize(block.rows, weights[kWeight1].value.columns);
    gemm_plus_row<T>(space, weights[kBias1].value, sum, weights[kWeight1].value, inner);
    relu_dropout<T>(space, {}, 0.0, inner);
    z.resize(block.rows, weights[kWeight2].value.columns);
    gemm_plus_row<T>(space, weights[kBias2].value, inner, weights[kWeight2].value, z);
  }

  LayerShape shape_;
  M sum_;    ///< Y
  M inner_;  ///< relu(Y W_1 + b_1)
};

inline std::vector<TensorShape> gin_tensors(const LayerShape& s) {
  return {{"eps", 1, 1, Start::kZero},
          {"inner_weight", s.in, s.out},
          {"inner_bias", 1, s.out, Start::kZero},
          {"weight", s.out, s.out},
          {"bias", 1, s.out, Start::kZero}};
}

inline LayerCosts gin_costs(const LayerShape& s, const BlockSize& b) {
  const double in = static_cast<double>(s.in), out = static_cast<double>(s.out),
               products = 2 * b.rows * (in + out) * out;
  const bool first = !s.gives_dx;
  const LayerWork forward = {products, b.entries() * in, b.rows * (in + 2 * out)};
  return {.forward = forward,
          .backward = {2 * products, first ? 0 : b.entries() * in, 2 * b.rows * (in + 2 * out)},
          .evaluation = forward,
          .kept = {b.rows * in, b.rows * out},
          .scratch = {b.rows * in, b.rows * out},
          .backward_scratch = {b.rows * out, b.rows * in},
          .transposes = !first};
}

inline constexpr LayerKind kGin = {
    .name = "gin",
    .about = "graph isomorphism (Xu et al. 2019): MLP((1 + eps) X_v + sum of X_u)",
    .matrix = [](std::string_view) { return MatrixForm::kSum; },
    .multiplies_block = true,
    .tensors = gin_tensors,
    .costs = gin_costs};

}  // namespace espalier
