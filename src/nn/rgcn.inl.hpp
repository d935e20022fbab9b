// The relational graph convolution of Schlichtkrull et al. (Modeling relational data with graph
// convolutional networks, ESWC 2018), with basis decomposition (equation 3).
//
//     W_r = sum over b of a_rb V_b
//     Z = X_d W_self + sum over r of B_r X W_r + bias
//       = X_d W_self + M [V_1; ..; V_B] + bias              M of dense/relation_sums.hpp
//
// B_r holds the block's entries of relation r: with the values of a sampler the mean over the picks
// of r. So relations cost a sparse product and a GEMM together, not each. As many bases as
// relations are as general as a matrix for each.
#pragma once

#include "espalier/dense/gemm.hpp"
#include "espalier/dense/relation_sums.hpp"
#include "espalier/nn/layer.hpp"
#include "espalier/sparse/transpose.hpp"
#include "product_costs.hpp"

namespace espalier {

template <class T, class Space>
class RgcnLayer final : public Layer<T, Space> {
  using M = Matrix<T, Space>;
  using Tensors = typename Layer<T, Space>::Tensors;

 public:
  explicit RgcnLayer(const LayerShape& shape) : shape_(shape) {}

  void forward(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
               Tensors weights, const KeyedStream&, M& z) override {
    run(space, block, x, weights, sums_, z);
  }

  void backward(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
                Tensors weights, const M& dz, LayerScratch<T, Space>& scratch, std::span<M> gradients,
                M* dx) override {
    gemm_tn<T>(space, x.first_rows(block.rows), dz, gradients[kSelf]);
    gemm_tn<T>(space, sums_, dz, gradients[kBasis]);
    gemm_nt<T>(space, dz, weights[kBasis].value, sums_);  // by M
    relation_sums_coefficient_gradient<T>(space, block, x, sums_, gradients[kCoefficient]);
    if (dx == nullptr) return;
    transpose(space, block, scratch.transposed, &scratch.positions);
    dx->resize(block.columns, x.columns);
    relation_sums_input_gradient<T>(space, block, scratch.transposed, scratch.positions,
                                    weights[kCoefficient].value, sums_,
                                    {scratch.matrices[0], scratch.winners}, *dx);
    gemm_nt<T>(space, dz, weights[kSelf].value, MatrixView<T, Space>(*dx).first_rows(block.rows),
               Update::kAccumulate);
  }

  void evaluate(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
                Tensors weights, LayerScratch<T, Space>& scratch, M& z) const override {
    run(space, block, x, weights, scratch.matrices[0], z);
  }

 private:
  static constexpr int kSelf = 0, kBasis = 1, kCoefficient = 2, kBias = 3;

  void run(const Space& space, const BlockView<Space>& block, ConstMatrixView<T, Space> x, Tensors weights,
           M& sums, M& z) const {
    sums.resize(block.rows, shape_.bases * x.columns);
    relation_sums<T>(space, block, weights[kCoefficient].value, x, sums);
    z.resize(block.rows, shape_.out);
    gemm_plus_row<T>(space, weights[kBias].value, x.first_rows(block.rows), weights[kSelf].value, z);
    gemm<T>(space, sums, weights[kBasis].value, z, Update::kAccumulate);
  }

  LayerShape shape_;
  M sums_;  ///< M, until backward makes dM of it
};

inline std::vector<TensorShape> rgcn_tensors(const LayerShape& s) {
  return {{"self", s.in, s.out},
          {"basis", s.bases * s.in, s.out, Start::kGlorot, s.bases},
          {"coefficient", s.relations, s.bases},
          {"bias", 1, s.out, Start::kZero}};
}

inline LayerCosts rgcn_costs(const LayerShape& s, const BlockSize& b) {
  const double in = static_cast<double>(s.in), out = static_cast<double>(s.out),
               bases = static_cast<double>(s.bases), sums = b.rows * bases * in;
  const double product = 2 * b.rows * (1 + bases) * numbers(s);
  const bool by_sums = s.gives_dx && gathers_gradients_of_sums(s.bases);
  // A row's relations differ: a sum is combined for each, which an entry has to itself at worst.
  const double most = std::min(b.entries(), b.rows * static_cast<double>(s.relations)),
               combined = most * in * bases,
               gathered_back = !s.gives_dx ? 0 : b.entries() * in * (by_sums ? 1 : bases);
  return {.forward = {product, b.entries() * in, combined + sums + b.rows * out},
          .backward = {2 * product, b.entries() * in + gathered_back,
                       (by_sums ? 2 : 1) * combined + sums + b.rows * out},
          .evaluation = {product, b.entries() * in, combined + sums + b.rows * out},
          .kept = {sums},
          .scratch = {sums},
          .backward_scratch = {by_sums ? most * in : 0, by_sums ? b.entries() : 0},
          .transposes = s.gives_dx,
          .keeps_positions = s.gives_dx};
}

inline constexpr LayerKind kRgcn = {
    .name = "rgcn",
    .about =
        "relational convolution (Schlichtkrull et al. 2018): X_v W_self + the mean over each relation, W_r "
        "of model.bases shared matrices",
    .takes_relations = true,
    .takes_bases = true,
    .tensors = rgcn_tensors,
    .costs = rgcn_costs};

}  // namespace espalier
