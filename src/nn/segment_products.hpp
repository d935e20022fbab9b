// What attention over relations does with the segments of one relation
// (sparse/relation_segments.hpp) and the rows that they name. So that each head of a relation is a
// dense product of its own over all its segments, vectors of segments are *stacked*: a matrix
// [heads * segments, width], in which vector h * segments + k belongs to head h of segment k.
//
// A source's row x_j is either width wide, and all heads read it, or heads * width, and each head
// reads its part of it. Weights stand beside entries: w [entries, heads].
//
// Laws: what is said of a segment depends on the rows that it names only, for any number of
// threads; sums have one order. Where rows of a result are not named they stay as they are.
#pragma once

#include <algorithm>
#include <cstdint>

#include "edge_softmax_rules.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/dense/matrix.hpp"
#include "espalier/sparse/relation_segments.hpp"

namespace espalier {

/// How many segments' vectors are stacked at once where nothing needs all of a relation's: they
/// stay near, and ask for little room however large the graph is.
template <class Space>
inline constexpr std::int64_t kStackedSegments = 4096;
template <>
inline constexpr std::int64_t kStackedSegments<Cuda> = 1 << 15;

/// Calls use(segments) for as many at a time.
template <class Space, class Use>
void for_each_stack(const SegmentsView& of, const Use& use) {
  for (std::int64_t from = 0; from < of.count; from += kStackedSegments<Space>)
    use(of.part(from, std::min(kStackedSegments<Space>, of.count - from)));
}

/// Some rows of a view: of one head in a stack, of one matrix among many that stand one under the
/// other.
template <class View>
View rows_from(const View& all, std::int64_t first, std::int64_t count) {
  return {count, all.columns, all.row(first)};
}

/// Numbers beside entries, in memory of the space: as they are, or as attention's weights with what
/// dropout says of them in their sign (nn/edge_softmax.hpp).
template <class T>
struct EntryWeights {
  const T* data = nullptr;  ///< [entries, heads]
  std::int64_t heads = 1;
  bool marked = false;
  T scale = 1;  ///< of marked ones that are kept

  ESPALIER_HD T operator()(std::int64_t entry, std::int64_t head) const {
    const T weight = data[entry * heads + head];
    return marked ? dropped(weight, scale) : weight;
  }
};

/// A vector for each segment and head: stacked, or the relation's own for all its segments.
template <class T>
struct HeadVectors {
  const T* data = nullptr;
  std::int64_t width = 0, by_head = 0, by_segment = 0;

  ESPALIER_HD const T* operator()(std::int64_t segment, std::int64_t head) const {
    return data + head * by_head + segment * by_segment;
  }
};
template <class T>
HeadVectors<T> stacked(const T* data, std::int64_t width, std::int64_t segments) {
  return {data, width, segments * width, width};
}
template <class T>
HeadVectors<T> of_relation(const T* data, std::int64_t width) {
  return {data, width, width, 0};
}

/// Where head h reads a row of `columns` numbers.
ESPALIER_HD inline std::int64_t part_of_head(std::int64_t columns, std::int64_t width, std::int64_t h) {
  return columns == width ? 0 : h * width;
}

/// The sum of w_eh over the entries of segment k.
template <class T>
ESPALIER_HD T weight_of_segment(const SegmentsView& of, std::int64_t k, const EntryWeights<T>& w,
                                std::int64_t h) {
  T sum = 0;
  for (std::int64_t e = of.begins[k]; e < of.ends[k]; ++e) sum += w(e, h);
  return sum;
}

/// g = stacked sums over a segment's entries of w_eh x_j.
template <class T>
void sum_segments(const Cpu&, const BlockView<Cpu>& block, const SegmentsView& of, EntryWeights<T> w,
                  ConstMatrixView<T> x, MatrixView<T> g);
template <class T>
void sum_segments(const Cuda&, const BlockView<Cuda>& block, const SegmentsView& of, EntryWeights<T> w,
                  ConstMatrixView<T, Cuda> x, MatrixView<T, Cuda> g);

/// products [entries, heads] of the segments' entries: g_kh . x_j; plus own_kh . x_i of the row i
/// itself unless own has no data.
template <class T>
void segment_dots(const Cpu&, const BlockView<Cpu>& block, const SegmentsView& of, HeadVectors<T> g,
                  HeadVectors<T> own, ConstMatrixView<T> x, Matrix<T>& products);
template <class T>
void segment_dots(const Cuda&, const BlockView<Cuda>& block, const SegmentsView& of, HeadVectors<T> g,
                  HeadVectors<T> own, ConstMatrixView<T, Cuda> x, Matrix<T, Cuda>& products);

/// dx_j += the sum over the relation's entries of source j of w_eh g_kh: of all heads, or
/// head by head.
template <class T>
void add_to_sources(const Cpu&, const BlockView<Cpu>& block, const SegmentsView& of, EntriesBySource order,
                    EntryWeights<T> w, HeadVectors<T> g, MatrixView<T> dx);
template <class T>
void add_to_sources(const Cuda&, const BlockView<Cuda>& block, const SegmentsView& of, EntriesBySource order,
                    EntryWeights<T> w, HeadVectors<T> g, MatrixView<T, Cuda> dx);

/// dx_i += the sum over heads of (the sum of w_eh over the segment's entries) g_kh.
template <class T>
void add_to_rows(const Cpu&, const SegmentsView& of, EntryWeights<T> w, HeadVectors<T> g, MatrixView<T> dx);
template <class T>
void add_to_rows(const Cuda&, const SegmentsView& of, EntryWeights<T> w, HeadVectors<T> g,
                 MatrixView<T, Cuda> dx);

/// sums [heads, width] = the sum over all entries of w_eh x_j, or with `own` of w_eh x_i.
template <class T>
void sum_relation(const Cpu&, const BlockView<Cpu>& block, const SegmentsView& of, EntryWeights<T> w,
                  bool own, ConstMatrixView<T> x, MatrixView<T> sums);
template <class T>
void sum_relation(const Cuda&, const BlockView<Cuda>& block, const SegmentsView& of, EntryWeights<T> w,
                  bool own, ConstMatrixView<T, Cuda> x, MatrixView<T, Cuda> sums);

/// stack [heads * segments, width] = factor times the parts of the segments' rows of
/// `from` [rows, heads * width]; and back, to += factor times it.
template <class T>
void take_rows(const Cpu&, const SegmentsView& of, ConstMatrixView<T> from, T factor, MatrixView<T> stack);
template <class T>
void take_rows(const Cuda&, const SegmentsView& of, ConstMatrixView<T, Cuda> from, T factor,
               MatrixView<T, Cuda> stack);
template <class T>
void add_taken_rows(const Cpu&, const SegmentsView& of, ConstMatrixView<T> stack, T factor, MatrixView<T> to);
template <class T>
void add_taken_rows(const Cuda&, const SegmentsView& of, ConstMatrixView<T, Cuda> stack, T factor,
                    MatrixView<T, Cuda> to);

#define ESPALIER_INSTANTIATE_SEGMENT_PRODUCTS(T, Space)                                                      \
  template void sum_segments<T>(const Space&, const BlockView<Space>&, const SegmentsView&, EntryWeights<T>, \
                                ConstMatrixView<T, Space>, MatrixView<T, Space>);                            \
  template void segment_dots<T>(const Space&, const BlockView<Space>&, const SegmentsView&, HeadVectors<T>,  \
                                HeadVectors<T>, ConstMatrixView<T, Space>, Matrix<T, Space>&);               \
  template void add_to_sources<T>(const Space&, const BlockView<Space>&, const SegmentsView&,                \
                                  EntriesBySource, EntryWeights<T>, HeadVectors<T>, MatrixView<T, Space>);   \
  template void add_to_rows<T>(const Space&, const SegmentsView&, EntryWeights<T>, HeadVectors<T>,           \
                               MatrixView<T, Space>);                                                        \
  template void sum_relation<T>(const Space&, const BlockView<Space>&, const SegmentsView&, EntryWeights<T>, \
                                bool, ConstMatrixView<T, Space>, MatrixView<T, Space>);                      \
  template void take_rows<T>(const Space&, const SegmentsView&, ConstMatrixView<T, Space>, T,                \
                             MatrixView<T, Space>);                                                          \
  template void add_taken_rows<T>(const Space&, const SegmentsView&, ConstMatrixView<T, Space>, T,           \
                                  MatrixView<T, Space>);

}  // namespace espalier
