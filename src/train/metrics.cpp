#include "espalier/train/metrics.hpp"

#include <algorithm>

#include "espalier/base/error.hpp"

namespace espalier {
namespace {

constexpr std::size_t kTruePositive = 0, kFalsePositive = 1, kFalseNegative = 2;

std::size_t prediction(const Matrix<float>& logits, std::int64_t i) {
  const float* row = logits.row(i);
  return static_cast<std::size_t>(std::max_element(row, row + logits.columns) - row);
}

}  // namespace

std::vector<std::int64_t> class_counts(const Cpu&, const Matrix<float>& logits,
                                       std::span<const std::int32_t> labels) {
  ESPALIER_CHECK(std::ssize(labels) == logits.rows, "{} labels for {} rows", labels.size(), logits.rows);
  std::vector<std::int64_t> counts(3 * logits.columns, 0);
  for (std::int64_t i = 0; i < logits.rows; ++i) {
    if (labels[i] < 0) continue;
    const auto label = static_cast<std::size_t>(labels[i]);
    const auto predicted = prediction(logits, i);
    if (predicted == label) {
      ++counts[3 * label + kTruePositive];
    } else {
      ++counts[3 * predicted + kFalsePositive];
      ++counts[3 * label + kFalseNegative];
    }
  }
  return counts;
}

std::vector<std::int64_t> confusion_counts(const Cpu&, const Matrix<float>& logits,
                                           std::span<const std::int32_t> labels) {
  ESPALIER_CHECK(std::ssize(labels) == logits.rows, "{} labels for {} rows", labels.size(), logits.rows);
  const auto classes = static_cast<std::size_t>(logits.columns);
  std::vector<std::int64_t> counts(classes * classes, 0);
  for (std::int64_t i = 0; i < logits.rows; ++i)
    if (labels[i] >= 0) ++counts[static_cast<std::size_t>(labels[i]) * classes + prediction(logits, i)];
  return counts;
}

double accuracy(std::span<const std::int64_t> counts) {
  std::int64_t right = 0, all = 0;
  for (std::size_t c = 0; c < counts.size(); c += 3) {
    right += counts[c + kTruePositive];
    all += counts[c + kTruePositive] + counts[c + kFalseNegative];
  }
  return all > 0 ? static_cast<double>(right) / static_cast<double>(all) : 0.0;
}

double macro_f1(std::span<const std::int64_t> counts) {
  double sum = 0;
  std::int64_t classes = 0;
  for (std::size_t c = 0; c < counts.size(); c += 3) {
    const std::int64_t errors = counts[c + kFalsePositive] + counts[c + kFalseNegative];
    const std::int64_t doubled = 2 * counts[c + kTruePositive];
    if (doubled + errors == 0) continue;  // neither label nor prediction anywhere
    sum += static_cast<double>(doubled) / static_cast<double>(doubled + errors);
    ++classes;
  }
  return classes > 0 ? sum / static_cast<double>(classes) : 0.0;
}

}  // namespace espalier
