// Blocks of relations with what attention multiplies their segments with, and what loops over the
// entries give in double, for the tests of both spaces.
#pragma once

#include <gtest/gtest.h>

#include "../../src/nn/entry_softmax.hpp"
#include "../../src/nn/segment_products.hpp"
#include "dense/eigen_oracle.hpp"
#include "dense/relation_blocks.hpp"
#include "espalier/sparse/transpose.hpp"
#include "space_arrays.hpp"

namespace espalier {

template <class T>
struct SegmentCase {
  Block block;
  Buffer<std::uint8_t> of_entries;
  std::int64_t heads, width, relations;
  bool whole;          ///< do all heads read all of a source's row?
  Matrix<T> w, x;      ///< [entries, heads], [columns, width or heads * width]
  Matrix<T> vectors;   ///< [relations * heads, width]
  Matrix<T> added_to;  ///< of the shape of x: what sources and rows have before

  SegmentCase(const Block& block_, std::int64_t heads_, std::int64_t width_, std::int64_t relations_,
              bool whole_, std::mt19937_64& random)
      : block(block_),
        of_entries(random_relations(block, relations_, random)),
        heads(heads_),
        width(width_),
        relations(relations_),
        whole(whole_),
        w(random_matrix<T>(block.entries(), heads, random)),
        x(random_matrix<T>(block.columns, whole ? width : heads * width, random)),
        vectors(random_matrix<T>(relations * heads, width, random)),
        added_to(random_matrix<T>(block.columns, x.columns, random)) {}
  std::int64_t part(std::int64_t h) const { return whole ? 0 : h * width; }
  BlockView<> view() const { return with_relations<Cpu>(block, of_entries); }
};

/// Of all relations.
struct SegmentResults {
  Matrix<double> summed;       ///< [entries, heads * width] in the row of a segment's first entry
  Matrix<double> dots;         ///< [entries, heads] of the relation's vectors and sources, and of
                               ///< rows where heads read them whole
  Matrix<double> sources;      ///< [columns, ..] added_to + w times the relation's vectors
  Matrix<double> totals, own;  ///< [relations * heads, width] of sources, and of rows
  Matrix<double> back;         ///< [rows, heads * width] summed, added to the rows
};

/// Entry by entry.
template <class T>
SegmentResults by_loops(const SegmentCase<T>& c) {
  const auto zeros = [](std::int64_t rows, std::int64_t columns) {
    return filled_matrix(rows, columns, 0.0);
  };
  const auto entries = c.block.entries(), all = c.heads * c.width;
  SegmentResults r{zeros(entries, all),
                   zeros(entries, c.heads),
                   in_double(c.added_to),
                   zeros(c.relations * c.heads, c.width),
                   zeros(c.relations * c.heads, c.width),
                   zeros(c.block.rows, all)};
  for (std::int64_t i = 0; i < c.block.rows; ++i)
    for (std::int64_t e = c.block.row_begin(i), first = e; e < c.block.row_end(i); ++e) {
      const int relation = c.of_entries[static_cast<std::size_t>(e)];
      if (c.of_entries[static_cast<std::size_t>(first)] != relation) first = e;
      const std::int64_t j = c.block.indices[static_cast<std::size_t>(e)];
      for (std::int64_t h = 0; h < c.heads; ++h)
        for (std::int64_t k = 0; k < c.width; ++k) {
          const double product = double{c.w(e, h)} * double{c.x(j, c.part(h) + k)},
                       vector = c.vectors(relation * c.heads + h, k);
          r.summed(first, h * c.width + k) += product;
          r.back(i, h * c.width + k) += product;
          r.totals(relation * c.heads + h, k) += product;
          r.own(relation * c.heads + h, k) += double{c.w(e, h)} * double{c.x(i, c.part(h) + k)};
          r.dots(e, h) += vector * double{c.x(j, c.part(h) + k)};
          if (c.whole) r.dots(e, h) += vector * double{c.x(i, k)};
          r.sources(j, c.part(h) + k) += double{c.w(e, h)} * vector;
          if (c.whole) r.sources(i, k) += double{c.w(e, h)} * vector;
        }
    }
  return r;
}

/// By the operations, of a view of the block in memory of the space. Stacks of a relation are taken
/// apart in the order of the loops.
template <class T, class Space>
SegmentResults by_segments(const Space& space, const SegmentCase<T>& c, const BlockView<Space>& block) {
  const auto bring = [&](const Matrix<T>& m) { return matrix_on(space, m); };
  const auto fetch = [&](const Matrix<T, Space>& m) { return matrix_from(space, m); };
  const auto w = bring(c.w), x = bring(c.x), vectors = bring(c.vectors);
  auto sources = bring(c.added_to), dots = bring(c.w), totals = bring(c.vectors),
       own_totals = bring(c.vectors);
  auto back = bring(filled_matrix(c.block.rows, c.heads * c.width, T{0}));
  RelationSegmentsOn<Space> segments;
  Csr<std::int32_t, Space> transposed;
  Array<Space, std::int32_t> positions;
  Array<Space, std::int32_t> order;
  find_segments(space, block, c.relations, segments);
  transpose(space, block, transposed, &positions);
  order_by_source(space, block, positions, segments, order);
  // Behind the segments the lists hold nothing.
  for (auto* list : {&segments.rows, &segments.begins})
    list->resize(static_cast<std::size_t>(segments.first.back()));
  const EntryWeights<T> weights{w.data.data(), c.heads};
  auto summed = filled_matrix(c.block.entries(), c.heads * c.width, 0.0);
  for (std::int64_t r = 0; r < c.relations; ++r) {
    const auto of = segments.of(r);
    const auto own = of_relation<T>(vectors.row(r * c.heads), c.width);
    segment_dots<T>(space, block, of, own, c.whole ? own : HeadVectors<T>{}, x, dots);
    add_to_sources<T>(space, block, of, segments.by_source(r, order), weights, own, sources);
    if (c.whole) add_to_rows<T>(space, of, weights, own, sources);
    sum_relation<T>(space, block, of, weights, false, x,
                    MatrixView<T, Space>(c.heads, c.width, totals.row(r * c.heads)));
    sum_relation<T>(space, block, of, weights, true, x,
                    MatrixView<T, Space>(c.heads, c.width, own_totals.row(r * c.heads)));
    Matrix<T, Space> stack(c.heads * of.count, c.width);
    sum_segments<T>(space, block, of, weights, x, stack);
    add_taken_rows<T>(space, of, stack, T{1}, back);
    const auto of_segments = fetch(stack);
    take_rows<T>(space, of, back, T{2}, stack);
    const auto taken = fetch(stack), from = fetch(back);
    const Buffer<std::int32_t> begins = array_from(space, segments.begins);
    const Buffer<std::int32_t> rows = array_from(space, segments.rows);
    const auto first = static_cast<std::size_t>(segments.first[static_cast<std::size_t>(r)]);
    for (std::size_t k = 0; k < static_cast<std::size_t>(of.count); ++k)
      for (std::int64_t h = 0; h < c.heads; ++h)
        for (std::int64_t at = 0; at < c.width; ++at) {
          const auto stacked = h * of.count + static_cast<std::int64_t>(k);
          summed(begins[first + k], h * c.width + at) = of_segments(stacked, at);
          EXPECT_EQ(taken(stacked, at), 2 * from(rows[first + k], h * c.width + at));
        }
  }
  return {summed,
          in_double(fetch(dots)),
          in_double(fetch(sources)),
          in_double(fetch(totals)),
          in_double(fetch(own_totals)),
          in_double(fetch(back))};
}

/// Within what float32 or double rounds of sums of at most some hundred terms of size 1.
inline void expect_near(const SegmentResults& result, const SegmentResults& expected, double tolerance) {
  EXPECT_LT(largest_difference(result.summed, expected.summed), tolerance);
  EXPECT_LT(largest_difference(result.dots, expected.dots), tolerance);
  EXPECT_LT(largest_difference(result.sources, expected.sources), tolerance);
  EXPECT_LT(largest_difference(result.totals, expected.totals), tolerance);
  EXPECT_LT(largest_difference(result.own, expected.own), tolerance);
  EXPECT_LT(largest_difference(result.back, expected.back), tolerance);
}

template <class Check>
void for_each_segment_case(std::uint64_t seed, const Check& check) {
  std::mt19937_64 random(seed);
  for (const std::int64_t rows : {0, 1, 40})
    for (const int most : {0, 1, 20})
      for (const auto& [heads, width] : {std::pair{1, 1}, {1, 40}, {3, 7}, {4, 33}})
        for (const std::int64_t relations : {1, 5, 22})
          for (const bool whole : {true, false})
            check(random_block_matrix(rows, 50, most, random), heads, width, relations, whole, random);
}

/// Weights and gradients of scores [entries, heads], by the definition.
inline std::pair<Matrix<double>, Matrix<double>> softmax_by_loops(const SegmentCase<double>& c,
                                                                  SoftmaxOver over,
                                                                  const Matrix<double>& by_weight) {
  Matrix<double> weights = c.w, gradients = c.w;
  const auto score = [&](std::int64_t e, std::int64_t h) {
    return c.w(e, h) > 0 ? c.w(e, h) : over.slope * c.w(e, h);
  };
  const auto together = [&](std::int64_t e, std::int64_t other) {
    return !over.relations ||
           c.of_entries[static_cast<std::size_t>(e)] == c.of_entries[static_cast<std::size_t>(other)];
  };
  for (std::int64_t i = 0; i < c.block.rows; ++i)
    for (auto e = c.block.row_begin(i); e < c.block.row_end(i); ++e)
      for (std::int64_t h = 0; h < c.heads; ++h) {
        double sum = 0, mean = 0;
        for (auto other = c.block.row_begin(i); other < c.block.row_end(i); ++other) {
          if (!together(e, other)) continue;
          sum += std::exp(score(other, h));
          mean += std::exp(score(other, h)) * by_weight(other, h);
        }
        weights(e, h) = std::exp(score(e, h)) / sum;
        gradients(e, h) = weights(e, h) * (by_weight(e, h) - mean / sum) * (c.w(e, h) > 0 ? 1 : over.slope);
      }
  return {weights, gradients};
}

}  // namespace espalier
