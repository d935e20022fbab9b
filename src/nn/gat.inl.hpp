// The graph attention layer of Velickovic et al. (Graph Attention Networks, ICLR 2018); attention
// itself is nn/edge_softmax.hpp.
//
//     P = X W [columns, heads * width]          part h of a row belongs to head h
//     w = softmax over u in N(v) and v of leaky_relu(a_source_h . p_uh + a_target_h . p_vh + c_uvh)
//     z_vh = sum_u dropout(w_uv) p_uh
//     Z = [z_v1 .. z_vH] + b, or their mean over the heads, + b
//
// c is what features of edges add (src/nn/edge_terms.hpp): nothing for v itself, and nothing where
// there are none. The block's values are not read: attention is over the picks, whichever sampler
// drew them.
#pragma once

#include "edge_terms.hpp"
#include "espalier/base/arrays.hpp"
#include "espalier/nn/edge_softmax.hpp"
#include "espalier/nn/layer.hpp"
#include "espalier/sparse/transpose.hpp"
#include "product_costs.hpp"

namespace espalier {

/// Numbers that a head gives each vertex.
inline std::int64_t head_width(const LayerShape& s) {
  return s.averages_heads ? s.out : s.out / s.heads;
}

template <class T, class Space>
class GatLayer final : public Layer<T, Space> {
  using M = Matrix<T, Space>;
  using Tensors = typename Layer<T, Space>::Tensors;

 public:
  explicit GatLayer(const LayerShape& shape) : shape_(shape) {}

  void forward(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
               Tensors weights, const KeyedStream& attention, M& z) override {
    run(space, block, x, weights, attention, shape_.attention_dropout,
        {projected_, source_, target_, weights_, all_, terms_}, z);
  }

  void backward(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
                Tensors weights, const M& dz, LayerScratch<T, Space>& scratch, std::span<M> gradients,
                M* dx) override {
    const double rate = shape_.attention_dropout;
    auto& [dweights, dtarget, dsource, dprojected, unused] = scratch.matrices;
    ConstMatrixView<T, Space> dall = dz;
    if (shape_.averages_heads) {
      average_heads_backward<T>(space, dz, all_);
      dall = all_;
    }
    edge_softmax_backward<T>(space, block, weights_, rate, source_, target_,
                             reads_edges() ? &terms_ : nullptr, projected_, dall, dweights, dtarget);
    if (reads_edges())
      edge_terms_backward<T>(space, block, dweights, EntryNumbers::kWithOwn, gradients[kEdge]);
    transpose(space, block, scratch.transposed, &scratch.positions);
    attend_backward<T>(space, scratch.transposed, scratch.positions, weights_, rate, dweights, dtarget, block,
                       dall, weights[kSource].value, weights[kTarget].value, dsource, dprojected);
    head_scores_backward<T>(space, projected_, dsource, gradients[kSource]);
    head_scores_backward<T>(space, projected_, dtarget, gradients[kTarget]);
    multiply_transposed<T>(space, x, dprojected, gradients[kWeight]);
    if (dx == nullptr) return;
    dx->resize(block.columns, x.columns);
    gemm_nt<T>(space, dprojected, weights[kWeight].value, *dx);
  }

  void evaluate(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
                Tensors weights, LayerScratch<T, Space>& scratch, M& z) const override {
    auto& [projected, source, target, of_edges, all] = scratch.matrices;
    run(space, block, x, weights, {}, 0, {projected, source, target, of_edges, all, scratch.more[0]}, z);
  }

 private:
  static constexpr int kWeight = 0, kSource = 1, kTarget = 2, kEdge = 3;
  bool reads_edges() const { return shape_.edge_features > 0; }
  int bias() const { return kEdge + reads_edges(); }

  /// What is computed on the way.
  struct Kept {
    M &projected, &source, &target, &weights, &all;
    M& terms;  ///< c, where the weights will be
  };

  void run(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x, Tensors tensors,
           const KeyedStream& attention, double rate, Kept kept, M& z) const {
    const std::int64_t heads = shape_.heads;
    kept.projected.resize(x.rows, heads * head_width(shape_));
    multiply<T>(space, x, tensors[kWeight].value, kept.projected);
    const ConstMatrixView<T, Space> projected = kept.projected;
    kept.source.resize(block.columns, heads);
    kept.target.resize(block.rows, heads);
    head_scores<T>(space, projected, tensors[kSource].value, kept.source);
    head_scores<T>(space, projected.first_rows(block.rows), tensors[kTarget].value, kept.target);
    if (reads_edges()) {
      kept.terms.resize(block.entries() + block.rows, heads);
      fill_zero(space, kept.terms.data);
      add_edge_terms<T>(space, block, tensors[kEdge].value, EntryNumbers::kWithOwn, kept.terms);
    }
    edge_softmax<T>(space, block, kept.source, kept.target, reads_edges() ? &kept.terms : nullptr, attention,
                    rate, kept.weights);
    z.resize(block.rows, shape_.out);
    if (shape_.averages_heads) {
      kept.all.resize(block.rows, projected.columns);
      attend<T>(space, block, kept.weights, rate, projected, kept.all);
      average_heads<T>(space, kept.all, tensors[bias()].value, z);
    } else {
      fill_rows<T>(space, tensors[bias()].value, z);
      attend<T>(space, block, kept.weights, rate, projected, z, Update::kAccumulate);
    }
  }

  LayerShape shape_;
  M projected_, source_, target_, weights_;
  M terms_;
  M all_;  ///< of all heads, where they are averaged; then its gradient
};

inline std::vector<TensorShape> gat_tensors(const LayerShape& s) {
  const std::int64_t width = head_width(s);
  std::vector<TensorShape> tensors = {{"weight", s.in, s.heads * width},
                                      {"source", s.heads, width},
                                      {"target", s.heads, width},
                                      {"bias", 1, s.out, Start::kZero}};
  add_edge_tensor(s, tensors);
  return tensors;
}

inline LayerCosts gat_costs(const LayerShape& s, const BlockSize& b) {
  const double in = static_cast<double>(s.in), heads = static_cast<double>(s.heads),
               all = heads * static_cast<double>(head_width(s)), edges = b.entries() + b.rows;
  const double product = 2 * b.columns * in * all;
  const bool first = !s.gives_dx;
  // Weights are read and written some four times on each way.
  const LayerWork forward = {product, edges * all, 4 * edges * heads + b.columns * all};
  std::vector<double> arrays = {b.columns * all, b.columns * heads, b.rows * heads, edges * heads};
  if (s.averages_heads) arrays.push_back(b.rows * all);
  if (s.edge_features > 0) arrays.push_back(edges * heads);
  return {.forward = forward,
          .backward = {product * (first ? 1 : 2), 2 * edges * all, 8 * edges * heads + 2 * b.columns * all},
          .evaluation = forward,
          .kept = arrays,
          .scratch = arrays,
          .backward_scratch = {edges * heads, b.rows * heads, b.columns * heads, b.columns * all},
          .transposes = true,
          .keeps_positions = true};
}

inline constexpr LayerKind kGat = {
    .name = "gat",
    .about = "graph attention (Velickovic et al. 2018): softmax over the picks and the vertex itself",
    .drops_input = true,
    .activation = "elu",
    .takes_heads = true,
    .drops_attention = true,
    .takes_edges = true,
    .takes_entries = true,
    .tensors = gat_tensors,
    .costs = gat_costs};

}  // namespace espalier
