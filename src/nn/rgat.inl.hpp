// The relational graph attention layer of MLPerf Training's graph benchmark (R-GAT on IGB-Full:
// DGL's HeteroGraphConv, with sum, of GATConv whose W is shared by sources and destinations);
// within a relation it is Velickovic et al. (Graph Attention Networks, ICLR 2018), and with a
// self term as Schlichtkrull et al. (2018) have it, so that a vertex without edges keeps a
// signal. Of relation r and head h, whose parts of the result stand side by side (in the last
// layer: their mean):
//
//     e_ij  = leaky_relu(a_source^rh . x_j W_rh + a_target^rh . x_i W_rh + what features of
//                        the edge add (src/nn/edge_terms.hpp))
//     w_ij  = softmax of e_ij over the picks j of relation r in row i
//     Z_i,h = (X W_self)_i,h + sum over r, j of dropout(w_ij) x_j W_rh + bias
//
// Scores are products with W_rh a, so no source is projected for them. Messages are summed first,
// x_j with its weight for each (row, relation, head), and then multiplied: the GEMM of a relation
// has as many rows as it has rows of the block in which it occurs. Projecting first would take one
// for each source that it names, which in sampled blocks of a large graph is fanout times as many,
// to save in the gather a factor of heads; and its X W_r would have to be kept. Either way no
// source meets a relation that its type does not have. What is summed is multiplied some thousand
// segments at a time and not kept; the backward pass sums again, for one relation after another.
//
// The block's values are not read: attention is over the picks, whichever sampler drew them.
#pragma once

#include "edge_terms.hpp"
#include "entry_softmax.hpp"
#include "espalier/base/arrays.hpp"
#include "espalier/dense/gemm.hpp"
#include "espalier/nn/edge_softmax.hpp"
#include "espalier/nn/layer.hpp"
#include "espalier/sparse/transpose.hpp"
#include "gat.inl.hpp"
#include "segment_products.hpp"

namespace espalier {

template <class T, class Space>
class RgatLayer final : public Layer<T, Space> {
  using M = Matrix<T, Space>;
  using View = MatrixView<T, Space>;
  using ConstView = ConstMatrixView<T, Space>;
  using Tensors = typename Layer<T, Space>::Tensors;

 public:
  explicit RgatLayer(const LayerShape& shape) : shape_(shape), width_(head_width(shape)) {}

  void forward(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
               Tensors weights, const KeyedStream& attention, M& z) override {
    run(space, block, x, weights, attention, shape_.attention_dropout, kept(), z);
  }

  void backward(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
                Tensors weights, const M& dz, LayerScratch<T, Space>& scratch, std::span<M> gradients,
                M* dx) override {
    auto& [of_entries, of_vectors, summed, messages, unused] = scratch.matrices;
    if (dx != nullptr) {
      transpose(space, block, scratch.transposed, &scratch.positions);
      order_by_source(space, block, scratch.positions, segments_, scratch.winners);
      dx->resize(block.columns, x.columns);
      fill_zero(space, dx->data);
      gemm_nt<T>(space, dz, weights[kSelf].value, View(*dx).first_rows(block.rows), Update::kAccumulate);
    }
    gemm_tn<T>(space, x.first_rows(block.rows), dz, gradients[kSelf]);
    of_entries.resize(block.entries(), shape_.heads);
    summed.resize(shape_.heads * block.rows, shape_.in);
    messages.resize(stacked_messages() * block.rows, width_);
    for (std::int64_t r = 0; r < shape_.relations; ++r)
      messages_backward(space, block, r, x, weights, dz, scratch, gradients, dx);
    entry_softmax_backward<T>(space, block, kOver, scores_, weights_, shape_.attention_dropout, of_entries);
    if (reads_edges())
      edge_terms_backward<T>(space, block, of_entries, EntryNumbers::kAlone, gradients[kEdge]);
    of_vectors.resize(2 * parts(), shape_.in);
    for (std::int64_t r = 0; r < shape_.relations; ++r)
      scores_backward(space, block, r, x, {of_entries.data.data(), shape_.heads}, scratch, of_vectors, dx);
    for (const auto& [tensor, vectors] : {std::pair{kSource, 0}, {kTarget, 1}})
      score_vectors_backward<T>(space, weights[kWeight].value, weights[tensor].value,
                                rows_from(View(of_vectors), vectors * parts(), parts()), gradients[kWeight],
                                gradients[tensor]);
  }

  void evaluate(const Space& space, const BlockView<Space>& block, const LayerInput<T, Space>& x,
                Tensors weights, LayerScratch<T, Space>& scratch, M& z) const override {
    auto& [vectors, scores, of_entries, summed, messages] = scratch.matrices;
    run(space, block, x, weights, {}, 0, {scratch.segments, vectors, scores, of_entries, summed, messages},
        z);
  }

 private:
  static constexpr int kSelf = 0, kWeight = 1, kSource = 2, kTarget = 3, kEdge = 4;
  bool reads_edges() const { return shape_.edge_features > 0; }
  int bias() const { return kEdge + reads_edges(); }
  static constexpr SoftmaxOver kOver = {.relations = true, .slope = kLeakySlope};

  /// What is computed on the way.
  struct Kept {
    RelationSegmentsOn<Space>& segments;
    M& vectors;           ///< [2 R heads, in] W_rh a_source^rh of all; then those of the targets
    M &scores, &weights;  ///< [entries, heads]
    M& summed;            ///< stacked, of one relation after another: weighted sums of sources, or
                          ///< their gradients
    M& messages;          ///< and what they become; their mean over the heads has a row for
                          ///< each segment
  };
  Kept kept() { return {segments_, vectors_, scores_, weights_, summed_, messages_}; }
  std::int64_t parts() const { return shape_.relations * shape_.heads; }
  /// W_rh, or its gradient.
  template <class V>
  V matrix_of(V all, std::int64_t relation, std::int64_t head) const {
    return rows_from(all, (relation * shape_.heads + head) * shape_.in, shape_.in);
  }
  HeadVectors<T> vectors_of(const M& vectors, int which, std::int64_t relation) const {
    return of_relation<T>(vectors.row(which * parts() + relation * shape_.heads), shape_.in);
  }
  /// Of head h among messages of `count` segments; all heads share them where they are averaged.
  View messages_of(View messages, std::int64_t count, std::int64_t head) const {
    return rows_from(messages, shape_.averages_heads ? 0 : head * count, count);
  }
  std::int64_t stacked_messages() const { return shape_.averages_heads ? 1 : shape_.heads; }
  T factor() const { return shape_.averages_heads ? T{1} / static_cast<T>(shape_.heads) : T{1}; }
  EntryWeights<T> marked_weights(const M& weights, double rate) const {
    return {weights.data.data(), shape_.heads, true, keep_scale<T>(rate)};
  }
  View stack(M& summed, const SegmentsView& of) const {
    return View(summed).first_rows(shape_.heads * of.count);
  }
  View stack_of_messages(M& messages, const SegmentsView& of) const {
    return View(messages).first_rows(stacked_messages() * of.count);
  }

  void run(const Space& space, const BlockView<Space>& block, ConstView x, Tensors tensors,
           const KeyedStream& attention, double rate, Kept kept, M& z) const {
    find_segments(space, block, shape_.relations, kept.segments);
    weigh(space, block, x, tensors, attention, rate, kept);
    z.resize(block.rows, shape_.out);
    gemm_plus_row<T>(space, tensors[bias()].value, x.first_rows(block.rows), tensors[kSelf].value, z);
    const auto at_once = std::min(block.rows, kStackedSegments<Space>);
    kept.summed.resize(shape_.heads * at_once, shape_.in);
    kept.messages.resize(stacked_messages() * at_once, width_);
    for (std::int64_t r = 0; r < shape_.relations; ++r)
      for_each_stack<Space>(kept.segments.of(r), [&](const SegmentsView& of) {
        const View summed = stack(kept.summed, of), messages = stack_of_messages(kept.messages, of);
        sum_segments<T>(space, block, of, marked_weights(kept.weights, rate), x, summed);
        for (std::int64_t h = 0; h < shape_.heads; ++h)
          gemm<T>(space, rows_from(summed, h * of.count, of.count),
                  matrix_of(ConstView(tensors[kWeight].value), r, h), messages_of(messages, of.count, h),
                  shape_.averages_heads && h > 0 ? Update::kAccumulate : Update::kOverwrite);
        add_taken_rows<T>(space, of, messages, factor(), z);
      });
  }

  /// Attention's scores and weights.
  void weigh(const Space& space, const BlockView<Space>& block, ConstView x, Tensors tensors,
             const KeyedStream& attention, double rate, Kept kept) const {
    kept.vectors.resize(2 * parts(), shape_.in);
    for (const auto& [tensor, vectors] : {std::pair{kSource, 0}, {kTarget, 1}})
      score_vectors<T>(space, tensors[kWeight].value, tensors[tensor].value,
                       rows_from(View(kept.vectors), vectors * parts(), parts()));
    kept.scores.resize(block.entries(), shape_.heads);
    for (std::int64_t r = 0; r < shape_.relations; ++r)
      segment_dots<T>(space, block, kept.segments.of(r), vectors_of(kept.vectors, 0, r),
                      vectors_of(kept.vectors, 1, r), x, kept.scores);
    if (reads_edges())
      add_edge_terms<T>(space, block, tensors[kEdge].value, EntryNumbers::kAlone, kept.scores);
    entry_softmax<T>(space, block, kOver, kept.scores, attention, rate, kept.weights);
  }

  /// Of a relation's messages: the gradients of its matrices, of the weights and, by way of what
  /// was summed, of the sources.
  void messages_backward(const Space& space, const BlockView<Space>& block, std::int64_t r, ConstView x,
                         Tensors tensors, const M& dz, LayerScratch<T, Space>& scratch,
                         std::span<M> gradients, M* dx) {
    const auto of = segments_.of(r);
    const View summed = stack(scratch.matrices[2], of), messages = stack_of_messages(scratch.matrices[3], of);
    const auto weights = marked_weights(weights_, shape_.attention_dropout);
    sum_segments<T>(space, block, of, weights, x, summed);
    take_rows<T>(space, of, dz, factor(), messages);
    for (std::int64_t h = 0; h < shape_.heads; ++h) {
      const View of_head = rows_from(summed, h * of.count, of.count),
                 dmessages = messages_of(messages, of.count, h);
      gemm_tn<T>(space, of_head, dmessages, matrix_of(View(gradients[kWeight]), r, h));
      gemm_nt<T>(space, dmessages, matrix_of(ConstView(tensors[kWeight].value), r, h), of_head);
    }
    const auto dsummed = stacked<T>(summed.data, shape_.in, of.count);
    segment_dots<T>(space, block, of, dsummed, {}, x, scratch.matrices[0]);
    if (dx != nullptr)
      add_to_sources<T>(space, block, of, segments_.by_source(r, scratch.winners), weights, dsummed, *dx);
  }

  /// Of a relation's scores: the gradients of its vectors, of the sources and of the rows.
  void scores_backward(const Space& space, const BlockView<Space>& block, std::int64_t r, ConstView x,
                       const EntryWeights<T>& dscores, LayerScratch<T, Space>& scratch, M& dvectors, M* dx) {
    const auto of = segments_.of(r);
    for (const int which : {0, 1})
      sum_relation<T>(space, block, of, dscores, which == 1, x,
                      rows_from(View(dvectors), which * parts() + r * shape_.heads, shape_.heads));
    if (dx == nullptr) return;
    add_to_sources<T>(space, block, of, segments_.by_source(r, scratch.winners), dscores,
                      vectors_of(vectors_, 0, r), *dx);
    add_to_rows<T>(space, of, dscores, vectors_of(vectors_, 1, r), *dx);
  }

  LayerShape shape_;
  std::int64_t width_;  ///< of a head
  RelationSegmentsOn<Space> segments_;
  M vectors_, scores_, weights_, summed_, messages_;
};

inline std::vector<TensorShape> rgat_tensors(const LayerShape& s) {
  const std::int64_t width = head_width(s), parts = s.relations * s.heads;
  // What relations give is added up: together they begin as one matrix [R in, width] for each head.
  std::vector<TensorShape> tensors = {{"self", s.in, s.out},
                                      {"weight", parts * s.in, width, Start::kGlorot, s.heads},
                                      {"source", parts, width, Start::kGlorot, s.relations},
                                      {"target", parts, width, Start::kGlorot, s.relations},
                                      {"bias", 1, s.out, Start::kZero}};
  add_edge_tensor(s, tensors);
  return tensors;
}

inline LayerCosts rgat_costs(const LayerShape& s, const BlockSize& b) {
  const double in = static_cast<double>(s.in), heads = static_cast<double>(s.heads),
               width = static_cast<double>(head_width(s)), e = b.entries(),
               parts = heads * static_cast<double>(s.relations),
               segments = most_segments(b.rows, e, s.relations);
  const double self = 2 * b.rows * numbers(s), messages = 2 * segments * heads * in * width,
               dots = 2 * (e + segments) * heads * in, vectors = 4 * parts * in * width;
  const LayerWork forward = {self + messages + dots + vectors, 2 * e * in,
                             4 * e * heads + segments * heads * (in + width)};
  const double at_once = std::min(b.rows, static_cast<double>(kStackedSegments<Cpu>)),
               of_messages = (s.averages_heads ? 1 : heads) * width;
  const std::vector<double> arrays = {segments,
                                      segments,
                                      segments,
                                      e,
                                      2 * parts * in,
                                      e * heads,
                                      e * heads,
                                      at_once * heads * in,
                                      at_once * of_messages};
  return {
      .forward = forward,
      .backward = {2 * self + 2 * messages + dots + 2 * vectors, (s.gives_dx ? 3 + 2 * heads : 3) * e * in,
                   8 * e * heads + 3 * segments * heads * (in + width)},
      .evaluation = forward,
      .kept = arrays,
      .scratch = arrays,
      .backward_scratch = {e * heads, 2 * parts * in, b.rows * heads * in, b.rows * of_messages,
                           s.gives_dx ? e : 0},
      .transposes = s.gives_dx,
      .keeps_positions = s.gives_dx};
}

inline constexpr LayerKind kRgat = {
    .name = "rgat",
    .about = "relational attention (MLPerf's R-GAT): X_v W_self + a softmax over the picks of each relation",
    .takes_heads = true,
    .takes_edges = true,
    .takes_relations = true,
    .tensors = rgat_tensors,
    .costs = rgat_costs};

}  // namespace espalier
