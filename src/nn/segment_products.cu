// A thread has an element of a vector, so that the threads of a warp read neighbouring elements of
// the rows that are gathered; or a head of a segment, where vectors are multiplied.
#include "segment_products.hpp"

#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/dense/device_column_sums.hpp"

namespace espalier {

namespace {

/// The sources of entries, as kernels read them.
struct Sources {
  const std::int64_t* indptr;
  const std::int32_t* indices;

  explicit Sources(const BlockView<Cuda>& block) : indptr(block.indptr), indices(block.indices) {}
  __device__ std::int64_t operator()(std::int64_t entry) const { return indices[indptr[0] + entry]; }
};

}  // namespace

template <class T>
void sum_segments(const Cuda& cuda, const BlockView<Cuda>& block, const SegmentsView& of, EntryWeights<T> w,
                  ConstMatrixView<T, Cuda> x, MatrixView<T, Cuda> g) {
  if (of.count == 0) return;
  const Sources source(block);
  const Divisor by_count(of.count);
  for_each_in_rows(cuda, "sum_segments", g.rows, g.columns, [=] __device__(std::int64_t i, std::int64_t c) {
    const auto h = by_count.quotient(i), k = i - h * of.count, at = part_of_head(x.columns, g.columns, h) + c;
    T sum = 0;
    for (std::int64_t e = of.begins[k]; e < of.ends[k]; ++e) sum += w(e, h) * x(source(e), at);
    g(i, c) = sum;
  });
}

template <class T>
void segment_dots(const Cuda& cuda, const BlockView<Cuda>& block, const SegmentsView& of, HeadVectors<T> g,
                  HeadVectors<T> own, ConstMatrixView<T, Cuda> x, Matrix<T, Cuda>& products) {
  const std::int64_t heads = products.columns;
  const Sources source(block);
  T* const out = products.data.data();
  for_each_in_rows(cuda, "segment_dots", of.count, heads, [=] __device__(std::int64_t k, std::int64_t h) {
    const T of_row = own.data == nullptr ? T{0} : product_of(own(k, h), x.row(of.rows[k]), own.width);
    const auto at = part_of_head(x.columns, g.width, h);
    for (std::int64_t e = of.begins[k]; e < of.ends[k]; ++e)
      out[e * heads + h] = product_of(g(k, h), x.row(source(e)) + at, g.width) + of_row;
  });
}

template <class T>
void add_to_sources(const Cuda& cuda, const BlockView<Cuda>& block, const SegmentsView& of,
                    EntriesBySource order, EntryWeights<T> w, HeadVectors<T> g, MatrixView<T, Cuda> dx) {
  const Sources source(block);
  const bool whole = dx.columns == g.width;
  const Divisor by_width(g.width);
  for_each_in_rows(
      cuda, "add_to_sources", order.count, dx.columns, [=] __device__(std::int64_t first, std::int64_t c) {
        const auto j = source(order.entries[first]);
        if (first > 0 && source(order.entries[first - 1]) == j) return;
        const auto head = whole ? std::int64_t{0} : by_width.quotient(c), last = whole ? w.heads : head + 1;
        T sum = dx(j, c);
        for (auto at = first; at < order.count && source(order.entries[at]) == j; ++at) {
          const std::int64_t e = order.entries[at];
          for (auto h = head; h < last; ++h) sum += w(e, h) * g(of.numbers[e], h)[c - head * g.width];
        }
        dx(j, c) = sum;
      });
}

template <class T>
void add_to_rows(const Cuda& cuda, const SegmentsView& of, EntryWeights<T> w, HeadVectors<T> g,
                 MatrixView<T, Cuda> dx) {
  for_each_in_rows(cuda, "add_to_rows", of.count, g.width, [=] __device__(std::int64_t k, std::int64_t c) {
    T sum = dx(of.rows[k], c);
    for (std::int64_t h = 0; h < w.heads; ++h) sum += weight_of_segment(of, k, w, h) * g(k, h)[c];
    dx(of.rows[k], c) = sum;
  });
}

template <class T>
void sum_relation(const Cuda& cuda, const BlockView<Cuda>& block, const SegmentsView& of, EntryWeights<T> w,
                  bool own, ConstMatrixView<T, Cuda> x, MatrixView<T, Cuda> out) {
  const std::int64_t width = out.columns;
  const Sources source(block);
  const Divisor by_width(width);
  sum_over_rows(
      cuda, of.count, out.rows * width,
      [=] __device__(std::int64_t k, std::int64_t j) {
        const auto h = by_width.quotient(j), at = part_of_head(x.columns, width, h) + j - h * width;
        if (own) return static_cast<double>(weight_of_segment(of, k, w, h) * x(of.rows[k], at));
        T sum = 0;
        for (std::int64_t e = of.begins[k]; e < of.ends[k]; ++e) sum += w(e, h) * x(source(e), at);
        return static_cast<double>(sum);
      },
      [=] __device__(std::int64_t j, double sum) { out.data[j] = static_cast<T>(sum); });
}

template <class T>
void take_rows(const Cuda& cuda, const SegmentsView& of, ConstMatrixView<T, Cuda> from, T factor,
               MatrixView<T, Cuda> stack) {
  if (of.count == 0) return;
  const std::int64_t width = stack.columns;
  const Divisor by_count(of.count);
  for_each_in_rows(cuda, "take_rows", from.columns / width * of.count, width,
                   [=] __device__(std::int64_t i, std::int64_t c) {
                     const auto h = by_count.quotient(i);
                     stack(i, c) = factor * from(of.rows[i - h * of.count], h * width + c);
                   });
}

template <class T>
void add_taken_rows(const Cuda& cuda, const SegmentsView& of, ConstMatrixView<T, Cuda> stack, T factor,
                    MatrixView<T, Cuda> to) {
  const std::int64_t width = stack.columns;
  const Divisor by_width(width);
  for_each_in_rows(cuda, "add_taken_rows", of.count, to.columns,
                   [=] __device__(std::int64_t k, std::int64_t at) {
                     const auto h = by_width.quotient(at);
                     to(of.rows[k], at) += factor * stack(h * of.count + k, at - h * width);
                   });
}

ESPALIER_INSTANTIATE_SEGMENT_PRODUCTS(float, Cuda)

}  // namespace espalier
