// A thread has whole rows. All heads of an entry are done together, so that each row of P is read
// once.
#include "espalier/nn/edge_softmax.hpp"

#include <algorithm>

#include "edge_softmax_rules.hpp"
#include "espalier/base/buffer.hpp"
#include "espalier/base/elementary.hpp"
#include "espalier/dense/column_sums.hpp"

namespace espalier {

namespace {

/// The first weight of row i.
std::int64_t first_weight(const BlockView<Cpu>& block, std::int64_t i) {
  return block.row_begin(i) - block.indptr[0] + i;
}

/// The largest score of each head.
template <class T>
void largest_scores(const T* scores, std::int64_t count, std::int64_t heads, T* most) {
  std::copy_n(scores + (count - 1) * heads, heads, most);  // the vertex's own: never missing
  for (std::int64_t k = 0; k + 1 < count; ++k)
    for (std::int64_t h = 0; h < heads; ++h) most[h] = std::max(most[h], scores[k * heads + h]);
}

}  // namespace

template <class T>
void edge_softmax(const Cpu& cpu, const BlockView<Cpu>& block, const Matrix<T>& source,
                  const Matrix<T>& target, const Matrix<T>* terms, const KeyedStream& mask, double rate,
                  Matrix<T>& weights) {
  const std::int64_t heads = source.columns;
  const std::uint32_t threshold = dropout_threshold(rate);
  weights.resize(block.entries() + block.rows, heads);
#pragma omp parallel num_threads(cpu.threads) if (block.entries() > 1024)
  {
    const auto room = workspace<struct HeadSums, T>(static_cast<std::size_t>(2 * heads));
    T *const most = room.data(), *const sum = most + heads;
#pragma omp for schedule(dynamic, 64)
    for (std::int64_t i = 0; i < block.rows; ++i) {
      const std::int64_t count = block.row_size(i) + 1;
      const std::int32_t* const columns = block.indices + block.row_begin(i);
      T* const row = weights.row(first_weight(block, i));
      const auto is_own_entry = [&](std::int64_t k) { return k + 1 < count && columns[k] == i; };
      for (std::int64_t k = 0; k < count; ++k) {
        const T* const of_source = source.row(k + 1 < count ? columns[k] : i);
        const T* const of_edge = terms == nullptr ? nullptr : terms->row(first_weight(block, i) + k);
        for (std::int64_t h = 0; h < heads; ++h)
          row[k * heads + h] = leaky(score_of(of_source[h], target(i, h), of_edge, h));
      }
      largest_scores(row, count, heads, most);
      for (std::int64_t k = 0; k < count; ++k)
        for (std::int64_t h = 0; h < heads; ++h) row[k * heads + h] -= most[h];
      for (std::int64_t e = 0; e < count * heads; ++e) row[e] = exp_of_nonpositive(row[e]);
      std::fill_n(sum, heads, T{0});
      for (std::int64_t k = 0; k < count; ++k)
        for (std::int64_t h = 0; h < heads; ++h) {
          T& weight = row[k * heads + h];
          if (is_own_entry(k)) weight = T{0};
          sum[h] += weight;
        }
      for (std::int64_t k = 0; k < count; ++k)
        for (std::int64_t h = 0; h < heads; ++h) row[k * heads + h] /= sum[h];
      if (rate > 0) mark_dropped(mask, i, threshold, row, count * heads);
    }
  }
}

template <class T>
void attend(const Cpu& cpu, const BlockView<Cpu>& block, const Matrix<T>& weights, double rate,
            ConstMatrixView<T> p, MatrixView<T> z, Update update) {
  const std::int64_t heads = weights.columns, width = p.columns / heads;
  const T scale = keep_scale<T>(rate);
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 64) if (block.entries() > 1024)
  for (std::int64_t i = 0; i < block.rows; ++i) {
    T* const sum = z.row(i);
    if (update == Update::kOverwrite) std::fill_n(sum, z.columns, T{0});
    const std::int64_t count = block.row_size(i) + 1;
    const T* const row = weights.row(first_weight(block, i));
    for (std::int64_t k = 0; k < count; ++k) {
      const T* const from = p.row(k + 1 < count ? block.indices[block.row_begin(i) + k] : i);
      for (std::int64_t h = 0; h < heads; ++h) {
        const T weight = dropped(row[k * heads + h], scale);
        for (std::int64_t c = h * width; c < (h + 1) * width; ++c) sum[c] += weight * from[c];
      }
    }
  }
}

template <class T>
void edge_softmax_backward(const Cpu& cpu, const BlockView<Cpu>& block, const Matrix<T>& weights, double rate,
                           const Matrix<T>& source, const Matrix<T>& target, const Matrix<T>* terms,
                           ConstMatrixView<T> p, ConstMatrixView<T> dz, Matrix<T>& dweights,
                           Matrix<T>& dtarget) {
  const std::int64_t heads = weights.columns, width = p.columns / heads;
  const T scale = keep_scale<T>(rate);
  dweights.resize(weights.rows, heads);
  dtarget.resize(block.rows, heads);
#pragma omp parallel num_threads(cpu.threads) if (block.entries() > 1024)
  {
    const auto room = workspace<struct HeadSums, T>(static_cast<std::size_t>(heads));
    T* const mean = room.data();
#pragma omp for schedule(dynamic, 64)
    for (std::int64_t i = 0; i < block.rows; ++i) {
      const std::int64_t count = block.row_size(i) + 1, first = first_weight(block, i);
      const auto source_of = [&](std::int64_t k) {
        return k + 1 < count ? static_cast<std::int64_t>(block.indices[block.row_begin(i) + k]) : i;
      };
      const T* const row = weights.row(first);
      T* const gradient = dweights.row(first);
      std::fill_n(mean, heads, T{0});
      for (std::int64_t k = 0; k < count; ++k) {
        const T* const from = p.row(source_of(k));
        for (std::int64_t h = 0; h < heads; ++h) {
          const T at = row[k * heads + h];
          const T by = at <= 0 ? T{0} : scale * product_of(dz.row(i) + h * width, from + h * width, width);
          gradient[k * heads + h] = by;
          mean[h] += weight_of(at) * by;
        }
      }
      std::fill_n(dtarget.row(i), heads, T{0});
      for (std::int64_t k = 0; k < count; ++k)
        for (std::int64_t h = 0; h < heads; ++h) {
          const T by_score = weight_of(row[k * heads + h]) * (gradient[k * heads + h] - mean[h]);
          const T* const of_edge = terms == nullptr ? nullptr : terms->row(first + k);
          const T before =
              by_score * leaky_gradient(score_of(source(source_of(k), h), target(i, h), of_edge, h));
          gradient[k * heads + h] = before;
          dtarget(i, h) += before;
        }
    }
  }
}

template <class T>
void attend_backward(const Cpu& cpu, const BlockView<Cpu>& transposed, const Buffer<std::int32_t>& positions,
                     const Matrix<T>& weights, double rate, const Matrix<T>& dweights,
                     const Matrix<T>& dtarget, const BlockView<Cpu>& block, ConstMatrixView<T> dz,
                     const Matrix<T>& a_source, const Matrix<T>& a_target, Matrix<T>& dsource,
                     Matrix<T>& dp) {
  const std::int64_t heads = a_source.rows, width = a_source.columns;
  const T scale = keep_scale<T>(rate);
  dsource.resize(block.columns, heads);
  dp.resize(block.columns, heads * width);
#pragma omp parallel for num_threads(cpu.threads) schedule(dynamic, 64) if (block.entries() > 1024)
  for (std::int64_t j = 0; j < block.columns; ++j) {
    T *const to = dp.row(j), *const score = dsource.row(j);
    std::fill_n(to, dp.columns, T{0});
    std::fill_n(score, heads, T{0});
    const auto add = [&](std::int64_t i, std::int64_t at) {
      for (std::int64_t h = 0; h < heads; ++h) {
        const T weight = dropped(weights(at, h), scale);
        score[h] += dweights(at, h);
        for (std::int64_t c = h * width; c < (h + 1) * width; ++c) to[c] += weight * dz(i, c);
      }
    };
    for (std::int64_t k = transposed.row_begin(j); k < transposed.row_end(j); ++k)
      add(transposed.indices[k], std::int64_t{positions[k]} + transposed.indices[k]);
    if (j < block.rows) add(j, first_weight(block, j + 1) - 1);
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t c = 0; c < width; ++c) {
        to[h * width + c] += score[h] * a_source(h, c);
        if (j < block.rows) to[h * width + c] += dtarget(j, h) * a_target(h, c);
      }
  }
}

template <class T>
void head_scores_backward(const Cpu& cpu, ConstMatrixView<T> p, const Matrix<T>& ds, Matrix<T>& da) {
  const auto sums = workspace<struct HeadScoreSums, double>(da.data.size());
  sum_over_rows(cpu, ds.rows, sums, [&](std::int64_t i, double* sum) {
    for (std::int64_t h = 0; h < da.rows; ++h)
      for (std::int64_t c = h * da.columns; c < (h + 1) * da.columns; ++c)
        sum[c] += static_cast<double>(ds(i, h)) * static_cast<double>(p(i, c));
  });
  for (std::size_t e = 0; e < sums.size(); ++e) da.data[e] = static_cast<T>(sums[e]);
}

ESPALIER_INSTANTIATE_EDGE_SOFTMAX(float, Cpu)
ESPALIER_INSTANTIATE_EDGE_SOFTMAX(double, Cpu)

}  // namespace espalier
