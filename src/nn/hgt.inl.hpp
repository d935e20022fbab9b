// The heterogeneous graph transformer of Hu et al. (Heterogeneous graph transformer, WWW 2020,
// equations 3 to 5). Of a row i of type t, an entry j of relation r and type s, and head h, d wide:
//
//     k_j = x_j K_s + k_s,  q_i = x_i Q_t + q_t,  v_j = x_j V_s + v_s      heads side by side
//     e_ij = (q_i^h . k_j^h W_att^rh) mu_rh / sqrt(d)
//            + what features of the edge add (src/nn/edge_terms.hpp), which is not the paper's
//     w_ij = softmax of e_ij over all entries of row i, whatever their relations
//     a_i^h = sum over j of dropout(w_ij) v_j^h W_msg^rh
//     y_i  = gelu(a_i) A_t + b_t
//     Z_i  = g_t y_i + (1 - g_t) x_i + bias,  g = sigmoid(skip)
//          = y_i + bias                                           where widths differ
//
// Dropout of weights and the row `bias` that every layer has are not the paper's. In the last
// layer, whose width is the number of classes, heads are as wide as the layer's input has them.
//
// Where W_att and W_msg stand is chosen by how many rows their products have: W_att^T turns q_i,
// once for each (row, relation) that is there, not k_j for each source, and v_j are summed over a
// relation's picks before W_msg turns the sum (src/nn/rgat.inl.hpp says the same of its W_r). mu
// and 1 / sqrt(d) are taken into W_att. Maps of types are a product for each run of a type.
//
// The block's values are not read.
#pragma once

#include <cmath>

#include "edge_terms.hpp"
#include "entry_softmax.hpp"
#include "espalier/base/arrays.hpp"
#include "espalier/dense/gemm.hpp"
#include "espalier/nn/between_layers.hpp"
#include "espalier/nn/layer.hpp"
#include "espalier/nn/own_rows.hpp"
#include "espalier/sparse/transpose.hpp"
#include "product_costs.hpp"
#include "segment_products.hpp"
#include "type_map.hpp"

namespace espalier {

/// Numbers that all heads give a vertex together.
inline std::int64_t hgt_width(const LayerShape& s) {
  return s.averages_heads ? (s.in + s.heads - 1) / s.heads * s.heads : s.out;
}
inline bool hgt_skips(const LayerShape& s) {
  return s.in == s.out;
}

template <class T, class Space>
class HgtLayer final : public Layer<T, Space> {
  using M = Matrix<T, Space>;
  using View = MatrixView<T, Space>;
  using ConstView = ConstMatrixView<T, Space>;
  using Tensors = typename Layer<T, Space>::Tensors;
  using Block = BlockView<Space>;

 public:
  explicit HgtLayer(const LayerShape& shape)
      : shape_(shape), width_(hgt_width(shape)), head_width_(width_ / shape.heads) {}

  void forward(const Space& space, const Block& block, const LayerInput<T, Space>& x, Tensors tensors,
               const KeyedStream& attention, M& z) override {
    run(space, block, x, tensors, attention, shape_.attention_dropout, kept(), z);
  }

  void backward(const Space& space, const Block& block, const LayerInput<T, Space>& x, Tensors tensors,
                const M& dz, LayerScratch<T, Space>& scratch, std::span<M> gradients, M* dx) override {
    Back back{scratch, gradients};
    transpose(space, block, scratch.transposed, &scratch.positions);
    order_by_source(space, block, scratch.positions, segments_, scratch.winners);
    for (int tensor = 0; tensor < bias(); ++tensor) fill_zero(space, gradients[tensor].data);
    output_backward(space, block, x, tensors, dz, back);
    for (M* of_columns : {&back.dkey, &back.dvalue}) {
      of_columns->resize(block.columns, width_);
      fill_zero(space, of_columns->data);
    }
    back.dquery.resize(block.rows, width_);
    fill_zero(space, back.dquery.data);
    back.of_entries.resize(block.entries(), shape_.heads);
    for (M* stack : {&back.first, &back.second, &back.third})
      stack->resize(shape_.heads * block.rows, head_width_);
    for (std::int64_t r = 0; r < shape_.relations; ++r) messages_backward(space, block, r, tensors, back);
    entry_softmax_backward<T>(space, block, kOver, scores_, weights_, shape_.attention_dropout,
                              back.of_entries);
    if (reads_edges())
      edge_terms_backward<T>(space, block, back.of_entries, EntryNumbers::kAlone, gradients[bias() - 1]);
    back.dattention.resize(parts() * head_width_, head_width_);
    for (std::int64_t r = 0; r < shape_.relations; ++r) scores_backward(space, block, r, back);
    scale_matrices_backward<T>(space, tensors[kAttention].value, tensors[kPrior].value, factor(),
                               back.dattention, gradients[kPrior]);
    add_rows<T>(space, back.dattention, gradients[kAttention]);
    maps_backward(space, block, x, tensors, dz, back, dx);
  }

  void evaluate(const Space& space, const Block& block, const LayerInput<T, Space>& x, Tensors tensors,
                LayerScratch<T, Space>& scratch, M& z) const override {
    auto& [key, value, query, scaled, scores] = scratch.matrices;
    auto& [weights, first, second, aggregated, activated, mapped, unused] = scratch.more;
    run(space, block, x, tensors, {}, 0,
        {scratch.segments, key, value, query, scaled, scores, weights, first, second, aggregated, activated,
         mapped},
        z);
  }

 private:
  static constexpr int kKey = 0, kValue = 2, kQuery = 4, kAttention = 6, kMessage = 7, kPrior = 8,
                       kOutput = 9, kSkip = 11;  // the bias of a map follows it
  static constexpr SoftmaxOver kOver = {};
  bool reads_edges() const { return shape_.edge_features > 0; }
  int bias() const { return kSkip + hgt_skips(shape_) + reads_edges(); }

  /// What is computed on the way.
  struct Kept {
    RelationSegmentsOn<Space>& segments;
    M &key, &value;             ///< [columns, width]
    M& query;                   ///< [rows, width]
    M& scaled;                  ///< W_att mu / sqrt(d)
    M &scores, &weights;        ///< [entries, heads]
    M &first, &second;          ///< stacked, of some segments
    M &aggregated, &activated;  ///< a, gelu(a) [rows, width]
    M& mapped;                  ///< y [rows, out]
  };
  Kept kept() {
    return {segments_, key_,   value_,  query_,      scaled_,    scores_,
            weights_,  first_, second_, aggregated_, activated_, mapped_};
  }
  /// What the backward pass works in.
  struct Back {
    LayerScratch<T, Space>& scratch;
    std::span<M> gradients;
    M &dkey = scratch.matrices[0], &dvalue = scratch.matrices[1], &dquery = scratch.matrices[2],
      &of_entries = scratch.matrices[3], &dattention = scratch.matrices[4];
    M &daggregated = scratch.more[0], &dmapped = scratch.more[1], &first = scratch.more[2],
      &second = scratch.more[3], &third = scratch.more[4], &row = scratch.more[5];

    EntriesBySource by_source(const RelationSegmentsOn<Space>& segments, std::int64_t relation) const {
      return segments.by_source(relation, scratch.winners);
    }
  };

  std::int64_t parts() const { return shape_.relations * shape_.heads; }
  T factor() const { return T{1} / std::sqrt(static_cast<T>(head_width_)); }
  template <class V>
  V matrix_of(V all, std::int64_t relation, std::int64_t head) const {
    return rows_from(all, (relation * shape_.heads + head) * head_width_, head_width_);
  }
  View stack(M& room, const SegmentsView& of) const { return View(room).first_rows(shape_.heads * of.count); }
  HeadVectors<T> vectors(const View& stack, const SegmentsView& of) const {
    return stacked<T>(stack.data, head_width_, of.count);
  }
  EntryWeights<T> marked_weights(const M& weights, double rate) const {
    return {weights.data.data(), shape_.heads, true, keep_scale<T>(rate)};
  }

  /// The map whose matrix is number `tensor`, the row behind it.
  static TypeMap<T, Space> map_of(Tensors tensors, int tensor) {
    return {tensors[tensor].value, tensors[tensor + 1].value};
  }

  void run(const Space& space, const Block& block, ConstView x, Tensors tensors, const KeyedStream& attention,
           double rate, Kept kept, M& z) const {
    find_segments(space, block, shape_.relations, kept.segments);
    map_of(tensors, kKey).apply(space, block, x, block.columns, kept.key);
    map_of(tensors, kValue).apply(space, block, x, block.columns, kept.value);
    map_of(tensors, kQuery).apply(space, block, x, block.rows, kept.query);
    const auto at_once = shape_.heads * std::min(block.rows, kStackedSegments<Space>);
    for (M* stack : {&kept.first, &kept.second}) stack->resize(at_once, head_width_);
    scale_matrices<T>(space, tensors[kAttention].value, tensors[kPrior].value, factor(), kept.scaled);
    score(space, block, kept);
    if (reads_edges())
      add_edge_terms<T>(space, block, tensors[bias() - 1].value, EntryNumbers::kAlone, kept.scores);
    entry_softmax<T>(space, block, kOver, kept.scores, attention, rate, kept.weights);
    sum_messages(space, block, tensors, rate, kept);
    gelu<T>(space, kept.aggregated, kept.activated);
    map_of(tensors, kOutput).apply(space, block, kept.activated, block.rows, kept.mapped);
    z.resize(block.rows, shape_.out);
    fill_rows<T>(space, tensors[bias()].value, z);
    if (!hgt_skips(shape_)) return add_rows<T>(space, kept.mapped, z);
    for_each_type_run(block, block.rows, [&](std::int64_t type, std::int64_t first, std::int64_t count) {
      add_mixed_rows<T>(space, tensors[kSkip].value, type, rows_from(x, first, count),
                        rows_from(ConstView(kept.mapped), first, count), rows_from(View(z), first, count));
    });
  }

  void score(const Space& space, const Block& block, Kept kept) const {
    kept.scores.resize(block.entries(), shape_.heads);
    for (std::int64_t r = 0; r < shape_.relations; ++r)
      for_each_stack<Space>(kept.segments.of(r), [&](const SegmentsView& of) {
        const View queries = stack(kept.first, of), turned = stack(kept.second, of);
        turn_queries(space, of, r, kept.query, kept.scaled, queries, turned);
        segment_dots<T>(space, block, of, vectors(turned, of), {}, kept.key, kept.scores);
      });
  }
  /// queries = q of the segments' rows, stacked; turned = each times W_att^T.
  void turn_queries(const Space& space, const SegmentsView& of, std::int64_t r, const M& query,
                    const M& scaled, View queries, View turned) const {
    take_rows<T>(space, of, query, T{1}, queries);
    for (std::int64_t h = 0; h < shape_.heads; ++h)
      gemm_nt<T>(space, rows_from(queries, h * of.count, of.count), matrix_of(ConstView(scaled), r, h),
                 rows_from(turned, h * of.count, of.count));
  }

  void sum_messages(const Space& space, const Block& block, Tensors tensors, double rate, Kept kept) const {
    kept.aggregated.resize(block.rows, width_);
    fill_zero(space, kept.aggregated.data);
    for (std::int64_t r = 0; r < shape_.relations; ++r)
      for_each_stack<Space>(kept.segments.of(r), [&](const SegmentsView& of) {
        const View summed = stack(kept.first, of), messages = stack(kept.second, of);
        sum_segments<T>(space, block, of, marked_weights(kept.weights, rate), kept.value, summed);
        for (std::int64_t h = 0; h < shape_.heads; ++h)
          gemm<T>(space, rows_from(summed, h * of.count, of.count),
                  matrix_of(ConstView(tensors[kMessage].value), r, h),
                  rows_from(messages, h * of.count, of.count));
        add_taken_rows<T>(space, of, messages, T{1}, kept.aggregated);
      });
  }

  /// From dZ to da, by way of the gates, the maps A and gelu.
  void output_backward(const Space& space, const Block& block, ConstView x, Tensors tensors, const M& dz,
                       Back& back) const {
    back.daggregated.resize(block.rows, width_);
    back.row.resize(1, std::max(width_, shape_.out));
    if (hgt_skips(shape_)) back.dmapped.resize(block.rows, shape_.out);
    for_each_type_run(block, block.rows, [&](std::int64_t type, std::int64_t first, std::int64_t count) {
      ConstView dy = rows_from(ConstView(dz), first, count);
      if (hgt_skips(shape_)) {
        const View of_gate = rows_from(View(back.dmapped), first, count);
        mixed_rows_backward<T>(space, tensors[kSkip].value, type, rows_from(x, first, count),
                               rows_from(ConstView(mapped_), first, count), dy, of_gate,
                               back.gradients[kSkip]);
        dy = of_gate;
      }
      add_map_gradients<T>(space, type, rows_from(ConstView(activated_), first, count), dy,
                           back.gradients[kOutput], back.gradients[kOutput + 1], back.row);
      gemm_nt<T>(space, dy, map_of(tensors, kOutput).matrix_of(type),
                 rows_from(View(back.daggregated), first, count));
    });
    gelu_backward<T>(space, aggregated_, back.daggregated);
  }
  /// Of a relation's messages: the gradients of its matrices, of the weights and of the values.
  void messages_backward(const Space& space, const Block& block, std::int64_t r, Tensors tensors,
                         Back& back) const {
    const auto of = segments_.of(r);
    const View summed = stack(back.first, of), messages = stack(back.second, of);
    const auto weights = marked_weights(weights_, shape_.attention_dropout);
    sum_segments<T>(space, block, of, weights, value_, summed);
    take_rows<T>(space, of, back.daggregated, T{1}, messages);
    for (std::int64_t h = 0; h < shape_.heads; ++h) {
      const View of_head = rows_from(summed, h * of.count, of.count),
                 dmessages = rows_from(messages, h * of.count, of.count);
      gemm_tn<T>(space, of_head, dmessages, matrix_of(View(back.gradients[kMessage]), r, h));
      gemm_nt<T>(space, dmessages, matrix_of(ConstView(tensors[kMessage].value), r, h), of_head);
    }
    segment_dots<T>(space, block, of, vectors(summed, of), {}, value_, back.of_entries);
    add_to_sources<T>(space, block, of, back.by_source(segments_, r), weights, vectors(summed, of),
                      back.dvalue);
  }

  /// Of a relation's scores: the gradients of its matrices, of the keys and of the queries.
  void scores_backward(const Space& space, const Block& block, std::int64_t r, Back& back) const {
    const auto of = segments_.of(r);
    const EntryWeights<T> dscores{back.of_entries.data.data(), shape_.heads};
    const View queries = stack(back.first, of), turned = stack(back.second, of),
               dturned = stack(back.third, of);
    turn_queries(space, of, r, query_, scaled_, queries, turned);
    add_to_sources<T>(space, block, of, back.by_source(segments_, r), dscores, vectors(turned, of),
                      back.dkey);
    sum_segments<T>(space, block, of, dscores, key_, dturned);
    for (std::int64_t h = 0; h < shape_.heads; ++h) {
      const View of_head = rows_from(queries, h * of.count, of.count),
                 dof_head = rows_from(dturned, h * of.count, of.count);
      gemm_tn<T>(space, dof_head, of_head, matrix_of(View(back.dattention), r, h));
      gemm<T>(space, dof_head, matrix_of(ConstView(scaled_), r, h), of_head);
    }
    add_taken_rows<T>(space, of, queries, T{1}, back.dquery);
  }

  /// Of the maps to keys, values and queries; dX by way of them and past the gates.
  void maps_backward(const Space& space, const Block& block, ConstView x, Tensors tensors, const M& dz,
                     Back& back, M* dx) const {
    if (dx != nullptr) {
      dx->resize(block.columns, x.columns);
      fill_zero(space, dx->data);
    }
    const auto of_map = [&](int tensor, const M& dmapped) {
      for_each_type_run(block, dmapped.rows, [&](std::int64_t type, std::int64_t first, std::int64_t count) {
        const auto dy = rows_from(ConstView(dmapped), first, count);
        add_map_gradients<T>(space, type, rows_from(x, first, count), dy, back.gradients[tensor],
                             back.gradients[tensor + 1], back.row);
        if (dx != nullptr)
          gemm_nt<T>(space, dy, map_of(tensors, tensor).matrix_of(type), rows_from(View(*dx), first, count),
                     Update::kAccumulate);
      });
    };
    of_map(kKey, back.dkey);
    of_map(kValue, back.dvalue);
    of_map(kQuery, back.dquery);
    if (dx == nullptr || !hgt_skips(shape_)) return;
    for_each_type_run(block, block.rows, [&](std::int64_t type, std::int64_t first, std::int64_t count) {
      add_past_gate<T>(space, tensors[kSkip].value, type, rows_from(ConstView(dz), first, count),
                       rows_from(View(*dx), first, count));
    });
  }

  LayerShape shape_;
  std::int64_t width_, head_width_;
  RelationSegmentsOn<Space> segments_;
  M key_, value_, query_, scaled_, scores_, weights_, first_, second_, aggregated_, activated_, mapped_;
};

inline std::vector<TensorShape> hgt_tensors(const LayerShape& s) {
  const std::int64_t width = hgt_width(s), head = width / s.heads, parts = s.relations * s.heads;
  std::vector<TensorShape> tensors = {{"key", s.types * s.in, width, Start::kGlorot, s.types},
                                      {"key_bias", s.types, width, Start::kZero},
                                      {"value", s.types * s.in, width, Start::kGlorot, s.types},
                                      {"value_bias", s.types, width, Start::kZero},
                                      {"query", s.types * s.in, width, Start::kGlorot, s.types},
                                      {"query_bias", s.types, width, Start::kZero},
                                      {"attention", parts * head, head, Start::kGlorot, parts},
                                      {"message", parts * head, head, Start::kGlorot, parts},
                                      {"prior", s.relations, s.heads, Start::kOne},
                                      {"output", s.types * width, s.out, Start::kGlorot, s.types},
                                      {"output_bias", s.types, s.out, Start::kZero}};
  if (hgt_skips(s)) tensors.push_back({"skip", s.types, 1, Start::kOne});
  tensors.push_back({"bias", 1, s.out, Start::kZero});
  add_edge_tensor(s, tensors);
  return tensors;
}

inline LayerCosts hgt_costs(const LayerShape& s, const BlockSize& b) {
  const double in = static_cast<double>(s.in), out = static_cast<double>(s.out),
               heads = static_cast<double>(s.heads), width = static_cast<double>(hgt_width(s)),
               head = width / heads, e = b.entries(), parts = heads * static_cast<double>(s.relations),
               segments = most_segments(b.rows, e, s.relations), skips = hgt_skips(s) ? 1 : 0,
               stack = std::min(b.rows, static_cast<double>(kStackedSegments<Cpu>)) * width;
  const double maps = 2 * in * width * (2 * b.columns + b.rows) + 2 * b.rows * width * out,
               turned = 2 * segments * width * head, dots = 2 * e * width;
  const LayerWork forward = {maps + 2 * turned + dots, 2 * e * width,
                             4 * e * heads + 4 * segments * width + b.rows * (4 * width + 3 * out)};
  std::vector<double> arrays = {segments, segments, segments, e};
  for (const double of_vertices : {b.columns, b.columns, b.rows, b.rows, b.rows})
    arrays.push_back(of_vertices * width);
  arrays.insert(arrays.end(), {parts * head * head, e * heads, e * heads, stack, stack});
  arrays.push_back(b.rows * out);
  return {.forward = forward,
          .backward = {2 * maps + 5 * turned + dots, 5 * e * width,
                       8 * e * heads + 10 * segments * width + b.columns * (2 * width + in)},
          .evaluation = forward,
          .kept = arrays,
          .scratch = arrays,
          .backward_scratch = {b.columns * width, b.columns * width, b.rows * width, e * heads,
                               parts * head * head, b.rows * width, skips * b.rows * out, b.rows * width,
                               b.rows * width, b.rows * width, std::max(width, out), e},
          .transposes = true,
          .keeps_positions = true};
}

inline constexpr LayerKind kHgt = {
    .name = "hgt",
    .about =
        "heterogeneous graph transformer (Hu et al. 2020): maps of each type, attention over all relations "
        "together, a gate",
    .takes_heads = true,
    .takes_edges = true,
    .takes_relations = true,
    .tensors = hgt_tensors,
    .costs = hgt_costs};

}  // namespace espalier
