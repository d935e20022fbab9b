// A layer to copy: Z = (B X) W + b. Put it into src/nn/KIND.inl.hpp, and replace the formula.
//
//     X [columns, in] the sources, B [rows, columns] the block, W [in, out], b [1, out]
#pragma once

#include "../../src/nn/product_costs.hpp"

namespace espalier {

template <class T, class Space>
class TemplateLayer final : public Layer<T, Space> {
  using M = Matrix<T, Space>;
  using Tensors = typename Layer<T, Space>::Tensors;

 public:
  explicit TemplateLayer(const LayerShape&) {}

  void forward(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
               Tensors weights, const KeyedStream&, M& z) override {
    run(space, block, x, weights, sum_, z);
  }
  void backward(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
                Tensors weights, const M& dz, LayerScratch<T, Space>& scratch, std::span<M> gradients,
                M* dx) override {
    gemm_tn<T>(space, sum_, dz, gradients[0]);  // dW = (B X)^T dZ; db is the network's
    if (dx == nullptr) return;
    auto& dsum = scratch.matrices[0];
    dsum.resize(block.rows, x.columns);
    gemm_nt<T>(space, dz, weights[0].value, dsum);  // d(B X) = dZ W^T
    transpose(space, block, scratch.transposed);
    dx->resize(block.columns, x.columns);
    spmm<T>(space, scratch.transposed, dsum, *dx);  // dX = B^T d(B X)
  }
  void evaluate(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
                Tensors weights, LayerScratch<T, Space>& scratch, M& z) const override {
    run(space, block, x, weights, scratch.matrices[0], z);
  }

 private:
  static void run(const Space& space, const BlockView<Space>& block, ConstMatrixView<T, Space> x,
                  Tensors weights, M& sum, M& z) {
    sum.resize(block.rows, x.columns);
    spmm<T>(space, block, x, sum);
    z.resize(block.rows, weights[0].value.columns);
    gemm_plus_row<T>(space, weights[1].value, sum, weights[0].value, z);
  }

  M sum_;  ///< B X, which backward reads
};

inline std::vector<TensorShape> template_tensors(const LayerShape& s) {
  return {{"weight", s.in, s.out}, {"bias", 1, s.out, Start::kZero}};
}

inline LayerCosts template_costs(const LayerShape& s, const BlockSize& b) {
  const double in = static_cast<double>(s.in), out = static_cast<double>(s.out);
  const LayerWork once = {
      .flops = 2 * b.rows * in * out, .gathered = b.entries() * in, .elements = b.rows * out};
  const double times = s.gives_dx ? 2 : 1;
  return {.forward = once,
          .backward = {times * once.flops, (times - 1) * once.gathered, 2 * once.elements},
          .evaluation = once,
          .kept = {b.rows * in},
          .scratch = {b.rows * in},
          .backward_scratch = {(times - 1) * b.rows * in},
          .transposes = s.gives_dx};
}

inline constexpr LayerKind kTemplate = {.name = "template",
                                        .about = "the sum over neighbours, multiplied: (B X) W + b",
                                        .matrix = [](std::string_view) { return MatrixForm::kSum; },
                                        .multiplies_block = true,
                                        .tensors = template_tensors,
                                        .costs = template_costs};

}  // namespace espalier
