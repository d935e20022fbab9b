#include "edge_terms.hpp"

#include <algorithm>

#include "edge_softmax_rules.hpp"
#include "espalier/base/buffer.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/dense/column_sums.hpp"

namespace espalier {

namespace {

/// The row of the numbers of an entry.
std::int64_t numbers_at(const BlockView<Cpu>& block, std::int64_t entry, EntryNumbers form) {
  if (form == EntryNumbers::kAlone) return entry;
  return entry + segment_of(block.indptr, block.rows, block.indptr[0] + entry);
}

template <class T>
T product_with_features(const float* features, const T* u, std::int64_t width) {
  T sum = 0;
  for (std::int64_t j = 0; j < width; ++j) sum += static_cast<T>(features[j]) * u[j];
  return sum;
}

}  // namespace

template <class T>
void add_edge_terms(const Cpu& cpu, const BlockView<Cpu>& block, const Matrix<T>& u, EntryNumbers form,
                    Matrix<T>& scores) {
  const auto& edges = block.edges;
  check_edges(edges, u.columns);
  const auto heads = scores.columns;
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (edges.count > 1024)
  for (std::int64_t k = 0; k < edges.count; ++k) {
    const std::int64_t entry = edges.entries[k];
    T* const to = scores.row(numbers_at(block, entry, form));
    const auto first = block.relation(block.indptr[0] + entry) * heads;
    for (std::int64_t h = 0; h < heads; ++h)
      to[h] += product_with_features(edges.rows + k * edges.width, u.row(first + h), edges.width);
  }
}

template <class T>
void edge_terms_backward(const Cpu& cpu, const BlockView<Cpu>& block, const Matrix<T>& dscores,
                         EntryNumbers form, Matrix<T>& du) {
  const auto& edges = block.edges;
  const auto heads = dscores.columns;
  const auto sums = workspace<struct EdgeTermSums, double>(du.data.size());
  sum_over_rows(cpu, edges.count, sums, [&](std::int64_t k, double* sum) {
    const std::int64_t entry = edges.entries[k];
    const T* const by = dscores.row(numbers_at(block, entry, form));
    double* const to = sum + block.relation(block.indptr[0] + entry) * heads * edges.width;
    const float* const features = edges.rows + k * edges.width;
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t j = 0; j < edges.width; ++j)
        to[h * edges.width + j] += static_cast<double>(by[h]) * static_cast<double>(features[j]);
  });
  for (std::size_t e = 0; e < sums.size(); ++e) du.data[e] = static_cast<T>(sums[e]);
}

ESPALIER_INSTANTIATE_EDGE_TERMS(float, Cpu)
ESPALIER_INSTANTIATE_EDGE_TERMS(double, Cpu)

template <class T>
void score_vectors_backward(const Cpu& cpu, ConstMatrixView<T> w, ConstMatrixView<T> a, ConstMatrixView<T> du,
                            MatrixView<T> dw, MatrixView<T> da) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (w.rows > 1024)
  for (std::int64_t p = 0; p < du.rows; ++p) {
    std::fill_n(da.row(p), da.columns, T{0});
    for (std::int64_t i = 0; i < du.columns; ++i) {
      const T by = du(p, i);
      const T *const from = w.row(p * du.columns + i), *const vector = a.row(p);
      T *const to = dw.row(p * du.columns + i), *const sum = da.row(p);
      for (std::int64_t c = 0; c < da.columns; ++c) {
        sum[c] += by * from[c];
        to[c] += by * vector[c];
      }
    }
  }
}

#define ESPALIER_INSTANTIATE(T)                                                               \
  template void score_vectors_backward<T>(const Cpu&, ConstMatrixView<T>, ConstMatrixView<T>, \
                                          ConstMatrixView<T>, MatrixView<T>, MatrixView<T>);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
