#include "espalier/nn/weighted_cross_entropy.hpp"

#include <algorithm>
#include <numeric>

#include "espalier/base/elementary.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/workspace.hpp"

namespace espalier {
namespace {

// What all rows share.
struct Smoothed {
  std::span<const double> weights;
  double smoothing, scale, total, share;
};

// The loss of one row; `gradient` [classes] becomes scale * gradient.
template <class T>
double loss_of_row(const Smoothed& shape, const T* logits, std::int32_t label, double* exponentials,
                   T* gradient) {
  const auto classes = std::ssize(shape.weights);
  const auto largest = static_cast<double>(*std::max_element(logits, logits + classes));
  double sum = 0, loss = 0;
  for (std::int64_t j = 0; j < classes; ++j)
    sum += exponentials[j] = exp_of_nonpositive(static_cast<double>(logits[j]) - largest);
  const double log_sum = log_of_positive(sum) + largest;
  for (std::int64_t j = 0; j < classes; ++j) {
    const double weight = shape.weights[j];
    loss += weighted_loss(weight, j == label, log_sum - static_cast<double>(logits[j]), shape.smoothing,
                          shape.share);
    gradient[j] = static_cast<T>(shape.scale * weighted_gradient(weight, j == label, exponentials[j] / sum,
                                                                 shape.weights[label], shape.total,
                                                                 shape.smoothing, shape.share));
  }
  return loss;
}

}  // namespace

template <class T>
double weighted_cross_entropy(const Cpu& cpu, const Matrix<T>& logits, std::span<const std::int32_t> labels,
                              std::span<const double> weights, double smoothing, double scale,
                              Matrix<T>& dlogits) {
  ESPALIER_CHECK(std::ssize(labels) == logits.rows, "{} labels for {} rows", labels.size(), logits.rows);
  ESPALIER_CHECK(std::ssize(weights) == logits.columns, "{} weights for {} classes", weights.size(),
                 logits.columns);
  const Smoothed shape{weights, smoothing, scale, std::accumulate(weights.begin(), weights.end(), 0.0),
                       smoothing / static_cast<double>(weights.size())};
  dlogits.resize(logits.rows, logits.columns);
  const auto losses = workspace<struct RowLosses, double>(labels.size());
#pragma omp parallel num_threads(cpu.threads) if (logits.rows > 64)
  {
    const auto exponentials = workspace<struct Exponentials, double>(weights.size());
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < logits.rows; ++i) {
      const std::int32_t label = labels[i];
      ESPALIER_CHECK(label < logits.columns, "label {} of {} classes", label, logits.columns);
      if (label < 0) std::fill(dlogits.row(i), dlogits.row(i) + dlogits.columns, T{0});
      losses[i] =
          label < 0 ? 0.0 : loss_of_row(shape, logits.row(i), label, exponentials.data(), dlogits.row(i));
    }
  }
  double sum = 0;
  for (const double loss : losses) sum += loss;
  return sum;
}

template double weighted_cross_entropy<float>(const Cpu&, const Matrix<float>&, std::span<const std::int32_t>,
                                              std::span<const double>, double, double, Matrix<float>&);
template double weighted_cross_entropy<double>(const Cpu&, const Matrix<double>&,
                                               std::span<const std::int32_t>, std::span<const double>, double,
                                               double, Matrix<double>&);

}  // namespace espalier
