// A thread has a head of a row (scores, weights) or an element of it (sums of rows), so that the
// threads of a warp read neighbouring elements of the rows that are gathered.
#include "edge_softmax_rules.hpp"
#include "espalier/base/device_array.hpp"
#include "espalier/base/elementary.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/dense/device_column_sums.hpp"

namespace espalier {

namespace {

/// A block as attention sees it: row i has its entries and then itself.
struct Neighbours {
  const std::int64_t* indptr;
  const std::int32_t* indices;

  explicit Neighbours(const BlockView<Cuda>& block) : indptr(block.indptr), indices(block.indices) {}
  __device__ std::int64_t count(std::int64_t i) const { return indptr[i + 1] - indptr[i] + 1; }
  __device__ std::int64_t first_weight(std::int64_t i) const { return indptr[i] - indptr[0] + i; }
  __device__ std::int64_t source(std::int64_t i, std::int64_t k) const {
    const std::int64_t entry = indptr[i] + k;
    return entry < indptr[i + 1] ? indices[entry] : i;
  }
  __device__ bool is_own_entry(std::int64_t i, std::int64_t k) const {
    const std::int64_t entry = indptr[i] + k;
    return entry < indptr[i + 1] && indices[entry] == i;
  }
};

}  // namespace

template <class T>
void edge_softmax(const Cuda& cuda, const BlockView<Cuda>& block, const Matrix<T, Cuda>& source,
                  const Matrix<T, Cuda>& target, const Matrix<T, Cuda>* terms, const KeyedStream& mask,
                  double rate, Matrix<T, Cuda>& weights) {
  const std::int64_t heads = source.columns;
  weights.resize(block.entries() + block.rows, heads);
  const Neighbours near(block);
  const std::uint32_t threshold = dropout_threshold(rate);
  const T *const from = source.data.data(), *const to = target.data.data();
  const T* const of_edges = terms == nullptr ? nullptr : terms->data.data();
  T* const result = weights.data.data();
  for_each_in_rows(cuda, "edge_softmax", block.rows, heads, [=] __device__(std::int64_t i, std::int64_t h) {
    const std::int64_t count = near.count(i);
    T* const row = result + near.first_weight(i) * heads + h;
    const T of_target = to[i * heads + h];
    T most = leaky(from[i * heads + h] + of_target), sum = 0;
    for (std::int64_t k = 0; k < count; ++k) {
      const T* const of_edge = of_edges == nullptr ? nullptr : of_edges + (near.first_weight(i) + k) * heads;
      const T score = leaky(score_of(from[near.source(i, k) * heads + h], of_target, of_edge, h));
      row[k * heads] = score;
      most = score > most ? score : most;
    }
    for (std::int64_t k = 0; k < count; ++k) {
      const T weight = near.is_own_entry(i, k) ? T{0} : exp_of_nonpositive(row[k * heads] - most);
      row[k * heads] = weight;
      sum += weight;
    }
    for (std::int64_t k = 0; k < count; ++k)
      row[k * heads] =
          marked(row[k * heads] / sum, rate <= 0 || keeps_weight(mask, i, threshold, k * heads + h));
  });
}

template <class T>
void attend(const Cuda& cuda, const BlockView<Cuda>& block, const Matrix<T, Cuda>& weights, double rate,
            ConstMatrixView<T, Cuda> p, MatrixView<T, Cuda> z, Update update) {
  const std::int64_t heads = weights.columns, width = p.columns / heads;
  const T scale = keep_scale<T>(rate);
  const Neighbours near(block);
  const Divisor by_width(width);
  const T* const by = weights.data.data();
  for_each_in_rows(cuda, "attend", z.rows, z.columns, [=] __device__(std::int64_t i, std::int64_t c) {
    const std::int64_t count = near.count(i);
    const T* const row = by + near.first_weight(i) * heads + by_width.quotient(c);
    T sum = update == Update::kOverwrite ? T{0} : z(i, c);
    for (std::int64_t k = 0; k < count; ++k) sum += dropped(row[k * heads], scale) * p(near.source(i, k), c);
    z(i, c) = sum;
  });
}

template <class T>
void edge_softmax_backward(const Cuda& cuda, const BlockView<Cuda>& block, const Matrix<T, Cuda>& weights,
                           double rate, const Matrix<T, Cuda>& source, const Matrix<T, Cuda>& target,
                           const Matrix<T, Cuda>* terms, ConstMatrixView<T, Cuda> p,
                           ConstMatrixView<T, Cuda> dz, Matrix<T, Cuda>& dweights, Matrix<T, Cuda>& dtarget) {
  const std::int64_t heads = weights.columns, width = p.columns / heads;
  const T scale = keep_scale<T>(rate);
  dweights.resize(weights.rows, heads);
  dtarget.resize(block.rows, heads);
  const Neighbours near(block);
  const T *const by = weights.data.data(), *const from = source.data.data(), *const to = target.data.data();
  const T* const of_edges = terms == nullptr ? nullptr : terms->data.data();
  T *const gradients = dweights.data.data(), *const sums = dtarget.data.data();
  for_each_in_rows(
      cuda, "edge_softmax_backward", block.rows, heads, [=] __device__(std::int64_t i, std::int64_t h) {
        const std::int64_t count = near.count(i);
        const T* const row = by + near.first_weight(i) * heads + h;
        T* const gradient = gradients + near.first_weight(i) * heads + h;
        T mean = 0, sum = 0;
        for (std::int64_t k = 0; k < count; ++k) {
          const T weight = row[k * heads];
          const T by_weight = weight <= 0 ? T{0}
                                          : scale * product_of(dz.row(i) + h * width,
                                                               p.row(near.source(i, k)) + h * width, width);
          gradient[k * heads] = by_weight;
          mean += weight_of(weight) * by_weight;
        }
        for (std::int64_t k = 0; k < count; ++k) {
          const T* const of_edge =
              of_edges == nullptr ? nullptr : of_edges + (near.first_weight(i) + k) * heads;
          const T before =
              weight_of(row[k * heads]) * (gradient[k * heads] - mean) *
              leaky_gradient(score_of(from[near.source(i, k) * heads + h], to[i * heads + h], of_edge, h));
          gradient[k * heads] = before;
          sum += before;
        }
        sums[i * heads + h] = sum;
      });
}

template <class T>
void attend_backward(const Cuda& cuda, const BlockView<Cuda>& transposed,
                     const DeviceArray<std::int32_t>& positions, const Matrix<T, Cuda>& weights, double rate,
                     const Matrix<T, Cuda>& dweights, const Matrix<T, Cuda>& dtarget,
                     const BlockView<Cuda>& block, ConstMatrixView<T, Cuda> dz,
                     const Matrix<T, Cuda>& a_source, const Matrix<T, Cuda>& a_target,
                     Matrix<T, Cuda>& dsource, Matrix<T, Cuda>& dp) {
  const std::int64_t heads = a_source.rows, width = a_source.columns, rows = block.rows;
  const T scale = keep_scale<T>(rate);
  dsource.resize(block.columns, heads);
  dp.resize(block.columns, heads * width);
  const Neighbours near(block);
  const auto* const begin = transposed.indptr;
  const auto* const row_of = transposed.indices;
  const auto* const position = positions.data();
  const T *const by = weights.data.data(), *const gradient = dweights.data.data();
  const T *const of_target = dtarget.data.data(), *const source = a_source.data.data(),
                 *const target = a_target.data.data();
  T *const scores = dsource.data.data(), *const result = dp.data.data();
  for_each_in_rows(cuda, "attend_backward_scores", block.columns, heads,
                   [=] __device__(std::int64_t j, std::int64_t h) {
                     T sum = 0;
                     for (std::int64_t k = begin[j]; k < begin[j + 1]; ++k)
                       sum += gradient[(std::int64_t{position[k]} + row_of[k]) * heads + h];
                     if (j < rows) sum += gradient[(near.first_weight(j + 1) - 1) * heads + h];
                     scores[j * heads + h] = sum;
                   });
  const std::int64_t columns = heads * width;
  const Divisor by_width(width);
  for_each_in_rows(
      cuda, "attend_backward", block.columns, columns, [=] __device__(std::int64_t j, std::int64_t c) {
        const std::int64_t h = by_width.quotient(c);
        T sum = 0;
        for (std::int64_t k = begin[j]; k < begin[j + 1]; ++k)
          sum += dropped(by[(std::int64_t{position[k]} + row_of[k]) * heads + h], scale) * dz(row_of[k], c);
        if (j < rows) sum += dropped(by[(near.first_weight(j + 1) - 1) * heads + h], scale) * dz(j, c);
        sum += scores[j * heads + h] * source[c];
        if (j < rows) sum += of_target[j * heads + h] * target[c];
        result[j * columns + c] = sum;
      });
}

template <class T>
void head_scores_backward(const Cuda& cuda, ConstMatrixView<T, Cuda> p, const Matrix<T, Cuda>& ds,
                          Matrix<T, Cuda>& da) {
  const std::int64_t heads = da.rows, width = da.columns;
  const Divisor by_width(width);
  const T* const of_scores = ds.data.data();
  T* const out = da.data.data();
  sum_over_rows(
      cuda, ds.rows, heads * width,
      [=] __device__(std::int64_t i, std::int64_t c) {
        return static_cast<double>(of_scores[i * heads + by_width.quotient(c)]) *
               static_cast<double>(p(i, c));
      },
      [=] __device__(std::int64_t c, double sum) { out[c] = static_cast<T>(sum); });
}

ESPALIER_INSTANTIATE_EDGE_SOFTMAX(float, Cuda)

}  // namespace espalier
