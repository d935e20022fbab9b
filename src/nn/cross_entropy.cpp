#include "espalier/nn/cross_entropy.hpp"

#include <algorithm>
#include <numeric>

#include "espalier/base/buffer.hpp"
#include "espalier/base/error.hpp"

namespace espalier {
namespace {

/// The sum of loss_of_row(i, room) over the rows; a thread has room for `room_size` numbers.
template <class LossOfRow>
double sum_of_losses(const Cpu& cpu, std::int64_t rows, std::int64_t room_size,
                     const LossOfRow& loss_of_row) {
  const auto losses = workspace<struct RowLosses, double>(static_cast<std::size_t>(rows));
#pragma omp parallel num_threads(cpu.threads) if (rows > 64)
  {
    const auto room = workspace<struct Exponentials, double>(static_cast<std::size_t>(room_size));
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < rows; ++i) losses[i] = loss_of_row(i, room.data());
  }
  return std::accumulate(losses.begin(), losses.end(), 0.0);
}

/// A row of logits with a label, and its softmax.
template <class T>
struct LabelledRow {
  const T* logits;
  std::int32_t label;
  const double* exponentials;  ///< of the logits minus the largest
  double sum, log_sum;         ///< of exponentials; log(sum_j exp(z_j))
  T* gradient;

  double probability(std::int64_t j) const { return exponentials[j] / sum; }
  double surprise(std::int64_t j) const { return log_sum - static_cast<double>(logits[j]); }
};

/// The sum of loss_of(a row) over the rows that have a label.
template <class T, class LossOf>
double sum_over_labelled_rows(const Cpu& cpu, const Matrix<T>& logits, std::span<const std::int32_t> labels,
                              Matrix<T>& dlogits, const LossOf& loss_of) {
  ESPALIER_CHECK(std::ssize(labels) == logits.rows, "{} labels for {} rows", labels.size(), logits.rows);
  const std::int64_t classes = logits.columns;
  dlogits.resize(logits.rows, classes);
  return sum_of_losses(cpu, logits.rows, classes, [&](std::int64_t i, double* exponentials) {
    const T* const z = logits.row(i);
    ESPALIER_CHECK(labels[i] < classes, "label {} of {} classes", labels[i], classes);
    if (labels[i] < 0) {
      std::fill_n(dlogits.row(i), classes, T{0});
      return 0.0;
    }
    const auto largest = static_cast<double>(*std::max_element(z, z + classes));
    double sum = 0;
    for (std::int64_t j = 0; j < classes; ++j)
      sum += exponentials[j] = exp_of_nonpositive(static_cast<double>(z[j]) - largest);
    return loss_of(
        LabelledRow<T>{z, labels[i], exponentials, sum, log_of_positive(sum) + largest, dlogits.row(i)});
  });
}

}  // namespace

template <class T>
double softmax_cross_entropy(const Cpu& cpu, const Matrix<T>& logits, std::span<const std::int32_t> labels,
                             double scale, Matrix<T>& dlogits) {
  return sum_over_labelled_rows(cpu, logits, labels, dlogits, [&](const LabelledRow<T>& row) {
    for (std::int64_t j = 0; j < logits.columns; ++j)
      row.gradient[j] = static_cast<T>(scale * (row.probability(j) - (j == row.label ? 1.0 : 0.0)));
    return row.surprise(row.label);
  });
}

template <class T>
double weighted_cross_entropy(const Cpu& cpu, const Matrix<T>& logits, std::span<const std::int32_t> labels,
                              std::span<const double> weights, double smoothing, double scale,
                              Matrix<T>& dlogits) {
  ESPALIER_CHECK(std::ssize(weights) == logits.columns, "{} weights for {} classes", weights.size(),
                 logits.columns);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0),
               share = smoothing / static_cast<double>(weights.size());
  return sum_over_labelled_rows(cpu, logits, labels, dlogits, [&](const LabelledRow<T>& row) {
    double loss = 0;
    for (std::int64_t j = 0; j < logits.columns; ++j) {
      loss += weighted_loss(weights[j], j == row.label, row.surprise(j), smoothing, share);
      row.gradient[j] =
          static_cast<T>(scale * weighted_gradient(weights[j], j == row.label, row.probability(j),
                                                   weights[row.label], total, smoothing, share));
    }
    return loss;
  });
}

template <class T>
double sigmoid_cross_entropy(const Cpu& cpu, const Matrix<T>& logits, std::span<const std::uint8_t> labels,
                             double scale, Matrix<T>& dlogits) {
  ESPALIER_CHECK(labels.size() == logits.data.size(), "{} labels for {} logits", labels.size(),
                 logits.data.size());
  dlogits.resize(logits.rows, logits.columns);
  return sum_of_losses(cpu, logits.rows, 0, [&](std::int64_t i, double*) {
    double sum = 0;
    for (std::int64_t j = 0; j < logits.columns; ++j) {
      const auto [loss, gradient] =
          label_loss(static_cast<double>(logits(i, j)), labels[i * logits.columns + j]);
      sum += loss;
      dlogits(i, j) = static_cast<T>(scale * gradient);
    }
    return sum;
  });
}

#define ESPALIER_INSTANTIATE(T)                                                                              \
  template double softmax_cross_entropy(const Cpu&, const Matrix<T>&, std::span<const std::int32_t>, double, \
                                        Matrix<T>&);                                                         \
  template double weighted_cross_entropy(const Cpu&, const Matrix<T>&, std::span<const std::int32_t>,        \
                                         std::span<const double>, double, double, Matrix<T>&);               \
  template double sigmoid_cross_entropy(const Cpu&, const Matrix<T>&, std::span<const std::uint8_t>, double, \
                                        Matrix<T>&);
ESPALIER_INSTANTIATE(float)
ESPALIER_INSTANTIATE(double)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
