// A thread has whole segments, or all entries of a source. All heads of an entry are done together,
// so that each row of X is read once.
#include "segment_products.hpp"

#include <algorithm>

#include "../dense/dot_products.hpp"
#include "espalier/base/buffer.hpp"
#include "espalier/dense/column_sums.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kSegmentsAtOnce = 32;  // handed to a thread

std::int64_t source_of(const BlockView<Cpu>& block, std::int64_t entry) {
  return block.indices[block.indptr[0] + entry];
}

template <class T>
void add_scaled(T factor, const T* from, std::int64_t width, T* to) {
  for (std::int64_t c = 0; c < width; ++c) to[c] += factor * from[c];
}

/// to [heads, width], `by_head` apart, = the sum over the entries of segment k of w_eh x_j.
template <class T>
void sum_segment(const BlockView<Cpu>& block, const SegmentsView& of, std::int64_t k,
                 const EntryWeights<T>& w, ConstMatrixView<T> x, std::int64_t width, std::int64_t by_head,
                 T* to) {
  for (std::int64_t h = 0; h < w.heads; ++h) std::fill_n(to + h * by_head, width, T{0});
  for (std::int64_t e = of.begins[k]; e < of.ends[k]; ++e) {
    const T* const from = x.row(source_of(block, e));
    for (std::int64_t h = 0; h < w.heads; ++h)
      add_scaled(w(e, h), from + part_of_head(x.columns, width, h), width, to + h * by_head);
  }
}

}  // namespace

template <class T>
void sum_segments(const Cpu& cpu, const BlockView<Cpu>& block, const SegmentsView& of, EntryWeights<T> w,
                  ConstMatrixView<T> x, MatrixView<T> g) {
#pragma omp parallel for num_threads(cpu.threads) \
    schedule(dynamic, kSegmentsAtOnce) if (of.count > kSegmentsAtOnce)
  for (std::int64_t k = 0; k < of.count; ++k)
    sum_segment(block, of, k, w, x, g.columns, of.count * g.columns, g.row(k));
}

template <class T>
void segment_dots(const Cpu& cpu, const BlockView<Cpu>& block, const SegmentsView& of, HeadVectors<T> g,
                  HeadVectors<T> own, ConstMatrixView<T> x, Matrix<T>& products) {
  const std::int64_t heads = products.columns;
#pragma omp parallel num_threads(cpu.threads) if (of.count > kSegmentsAtOnce)
  {
    const auto of_row = workspace<struct ProductsOfRow, T>(static_cast<std::size_t>(heads));
#pragma omp for schedule(dynamic, kSegmentsAtOnce)
    for (std::int64_t k = 0; k < of.count; ++k) {
      for (std::int64_t h = 0; h < heads; ++h)
        of_row[h] = own.data == nullptr ? T{0} : dot(own(k, h), x.row(of.rows[k]), own.width);
      for (std::int64_t e = of.begins[k]; e < of.ends[k]; ++e) {
        const T* const from = x.row(source_of(block, e));
        for (std::int64_t h = 0; h < heads; ++h)
          products(e, h) = dot(g(k, h), from + part_of_head(x.columns, g.width, h), g.width) + of_row[h];
      }
    }
  }
}

template <class T>
void add_to_sources(const Cpu& cpu, const BlockView<Cpu>& block, const SegmentsView& of,
                    EntriesBySource order, EntryWeights<T> w, HeadVectors<T> g, MatrixView<T> dx) {
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 64) if (order.count > 1024)
  for (std::int64_t first = 0; first < order.count; ++first) {
    const auto source = source_of(block, order.entries[first]);
    if (first > 0 && source_of(block, order.entries[first - 1]) == source) continue;
    T* const to = dx.row(source);
    for (auto at = first; at < order.count && source_of(block, order.entries[at]) == source; ++at) {
      const std::int64_t e = order.entries[at];
      for (std::int64_t h = 0; h < w.heads; ++h)
        add_scaled(w(e, h), g(of.numbers[e], h), g.width, to + part_of_head(dx.columns, g.width, h));
    }
  }
}

template <class T>
void add_to_rows(const Cpu& cpu, const SegmentsView& of, EntryWeights<T> w, HeadVectors<T> g,
                 MatrixView<T> dx) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (of.count > 256)
  for (std::int64_t k = 0; k < of.count; ++k)
    for (std::int64_t h = 0; h < w.heads; ++h)
      add_scaled(weight_of_segment(of, k, w, h), g(k, h), g.width, dx.row(of.rows[k]));
}

template <class T>
void sum_relation(const Cpu& cpu, const BlockView<Cpu>& block, const SegmentsView& of, EntryWeights<T> w,
                  bool own, ConstMatrixView<T> x, MatrixView<T> out) {
  const std::int64_t heads = out.rows, width = out.columns;
  const auto sums = workspace<struct RelationTotals, double>(static_cast<std::size_t>(heads * width));
  sum_over_rows(cpu, of.count, sums, [&](std::int64_t k, double* sum) {
    const auto of_segment = workspace<struct SegmentTotals, T>(static_cast<std::size_t>(heads * width));
    if (own)
      for (std::int64_t h = 0; h < heads; ++h) {
        const T weight = weight_of_segment(of, k, w, h);
        const T* const from = x.row(of.rows[k]) + part_of_head(x.columns, width, h);
        for (std::int64_t c = 0; c < width; ++c) of_segment[h * width + c] = weight * from[c];
      }
    else
      sum_segment(block, of, k, w, x, width, width, of_segment.data());
    for (std::int64_t c = 0; c < heads * width; ++c) sum[c] += static_cast<double>(of_segment[c]);
  });
  for (std::size_t c = 0; c < sums.size(); ++c) out.data[c] = static_cast<T>(sums[c]);
}

template <class T>
void take_rows(const Cpu& cpu, const SegmentsView& of, ConstMatrixView<T> from, T factor,
               MatrixView<T> stack) {
  const std::int64_t width = stack.columns, heads = from.columns / width;
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (of.count > 256)
  for (std::int64_t k = 0; k < of.count; ++k)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t c = 0; c < width; ++c)
        stack(h * of.count + k, c) = factor * from(of.rows[k], h * width + c);
}

template <class T>
void add_taken_rows(const Cpu& cpu, const SegmentsView& of, ConstMatrixView<T> stack, T factor,
                    MatrixView<T> to) {
  const std::int64_t width = stack.columns, heads = to.columns / width;
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (of.count > 256)
  for (std::int64_t k = 0; k < of.count; ++k)
    for (std::int64_t h = 0; h < heads; ++h)
      add_scaled(factor, stack.row(h * of.count + k), width, to.row(of.rows[k]) + h * width);
}

ESPALIER_INSTANTIATE_SEGMENT_PRODUCTS(float, Cpu)
ESPALIER_INSTANTIATE_SEGMENT_PRODUCTS(double, Cpu)

}  // namespace espalier
