// What a network was found to be worth: the scores of each split, by the names of the metrics.
//
// Which metrics there are is the task's word (task.hpp). One that a split does not define (the
// ROC-AUC of labels that are all 1) is NaN there, and in no report.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

/// How a metric is called in configs and reports, and in what is printed. Larger is better, for all
/// of them.
struct MetricKind {
  const char* name;   ///< "macro_f1"
  const char* words;  ///< "macro-F1"
};

struct Score {
  std::string name;  ///< of a MetricKind
  double value = 0;  ///< NaN: not defined
  friend bool operator==(const Score&, const Score&) = default;
};

struct Metrics {
  std::vector<Score> scores;  ///< of all metrics of the task, in their order
  std::int64_t vertices = 0;  ///< how many were evaluated; 0: the split is empty

  /// Nothing where it is not defined.
  std::optional<double> find(std::string_view name) const {
    for (const auto& score : scores)
      if (score.name == name && !std::isnan(score.value)) return score.value;
    return {};
  }
  friend bool operator==(const Metrics&, const Metrics&) = default;
};

struct Evaluation {
  Metrics train;
  Metrics valid;
  Metrics test;
  /// Of the test split, this rank's share: how many vertices of label i were taken for class j,
  /// [classes, classes], row after row. Empty where the task has none.
  std::vector<std::int64_t> confusion;
};

}  // namespace espalier
