// Predictions are found where logits lie, and counted by the host.
#include "espalier/train/metrics.hpp"

#include "espalier/base/arrays.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/kernels.hpp"

namespace espalier {

namespace {

// The first largest logit of each row; NaN is never larger. Of as many rows as labels.
Buffer<std::int32_t> predictions(const Space& space, ConstMatrixView<float, Space> logits,
                                 std::span<const std::int32_t> labels) {
  ESPALIER_CHECK(std::ssize(labels) == logits.rows, "{} labels for {} rows", labels.size(), logits.rows);
  Array<Space, std::int32_t> classes(labels.size());
  auto* const to = classes.data();
  for_rows(space, "predictions", logits.rows, logits.rows * logits.columns,
           [=] ESPALIER_DEVICE(std::int64_t i) {
             const float* const row = logits.row(i);
             std::int32_t best = 0;
             for (std::int32_t c = 1; c < logits.columns; ++c)
               if (row[best] < row[c]) best = c;
             to[i] = best;
           });
  return copy_from(space, classes);
}

}  // namespace

std::vector<std::int64_t> class_counts(const Space& space, const Matrix<float, Space>& logits,
                                       std::span<const std::int32_t> labels) {
  const auto predicted = predictions(space, logits, labels);
  std::vector<std::int64_t> counts(3 * logits.columns, 0);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0) continue;
    if (predicted[i] == labels[i]) {
      ++counts[3 * labels[i] + kTruePositive];
    } else {
      ++counts[3 * predicted[i] + kFalsePositive];
      ++counts[3 * labels[i] + kFalseNegative];
    }
  }
  return counts;
}

std::vector<std::int64_t> confusion_counts(const Space& space, const Matrix<float, Space>& logits,
                                           std::span<const std::int32_t> labels) {
  const auto predicted = predictions(space, logits, labels);
  std::vector<std::int64_t> counts(logits.columns * logits.columns, 0);
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (labels[i] >= 0) ++counts[labels[i] * logits.columns + predicted[i]];
  return counts;
}

}  // namespace espalier
