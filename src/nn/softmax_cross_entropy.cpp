#include "espalier/nn/softmax_cross_entropy.hpp"

#include <algorithm>

#include "espalier/base/elementary.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/workspace.hpp"

namespace espalier {
namespace {

/// The loss of one row; `gradient` [classes] becomes scale * (softmax - onehot).
template <class T>
double loss_of_row(const T* logits, std::int64_t classes, std::int32_t label, double scale,
                   double* exponentials, T* gradient) {
  const auto largest = static_cast<double>(*std::max_element(logits, logits + classes));
  double sum = 0;
  for (std::int64_t j = 0; j < classes; ++j)
    sum += exponentials[j] = exp_of_nonpositive(static_cast<double>(logits[j]) - largest);
  for (std::int64_t j = 0; j < classes; ++j)
    gradient[j] = static_cast<T>(scale * (exponentials[j] / sum - (j == label ? 1.0 : 0.0)));
  return log_of_positive(sum) + largest - static_cast<double>(logits[label]);
}

}  // namespace

template <class T>
double softmax_cross_entropy(const Cpu& cpu, const Matrix<T>& logits, std::span<const std::int32_t> labels,
                             double scale, Matrix<T>& dlogits) {
  ESPALIER_CHECK(static_cast<std::int64_t>(labels.size()) == logits.rows, "{} labels for {} rows",
                 labels.size(), logits.rows);
  dlogits.resize(logits.rows, logits.columns);
  const auto losses = workspace<struct RowLosses, double>(labels.size());
#pragma omp parallel num_threads(cpu.threads) if (logits.rows > 64)
  {
    const auto exponentials =
        workspace<struct Exponentials, double>(static_cast<std::size_t>(logits.columns));
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < logits.rows; ++i) {
      const std::int32_t label = labels[i];
      ESPALIER_CHECK(label < logits.columns, "label {} of {} classes", label, logits.columns);
      if (label < 0) std::fill(dlogits.row(i), dlogits.row(i) + dlogits.columns, T{0});
      losses[i] = label < 0 ? 0.0
                            : loss_of_row(logits.row(i), logits.columns, label, scale, exponentials.data(),
                                          dlogits.row(i));
    }
  }
  double sum = 0;
  for (const double loss : losses) sum += loss;
  return sum;
}

template double softmax_cross_entropy<float>(const Cpu&, const Matrix<float>&, std::span<const std::int32_t>,
                                             double, Matrix<float>&);
template double softmax_cross_entropy<double>(const Cpu&, const Matrix<double>&,
                                              std::span<const std::int32_t>, double, Matrix<double>&);

}  // namespace espalier
