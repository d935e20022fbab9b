// Accuracy and macro-F1 from integer counts, which ranks add with one all-reduce.
//
// Per class c three counts: true positives, false positives (predicted c, is another), false
// negatives (is c, predicted another).
//
//     F1_c = 2 tp / (2 tp + fp + fn)
//
// macro-F1 is the mean over the classes that appear as a label or as a prediction, scikit-learn's
// f1_score(average="macro").
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "espalier/dense/matrix.hpp"

namespace espalier {

/// The counts of `logits` [rows, classes] against `labels` [rows], host memory: [3 * classes],
/// class after class (tp, fp, fn). The prediction is the largest logit, the lowest class of
/// equal ones.
/// Rows without a label (-1) do not count. On a GPU the host waits.
std::vector<std::int64_t> class_counts(const Cpu&, const Matrix<float>& logits,
                                       std::span<const std::int32_t> labels);
std::vector<std::int64_t> class_counts(const Cuda&, const Matrix<float, Cuda>& logits,
                                       std::span<const std::int32_t> labels);

/// How many rows of label i were predicted as class j, [classes * classes], row after row. Labels
/// as above; on a GPU the host waits.
std::vector<std::int64_t> confusion_counts(const Cpu&, const Matrix<float>& logits,
                                           std::span<const std::int32_t> labels);
std::vector<std::int64_t> confusion_counts(const Cuda&, const Matrix<float, Cuda>& logits,
                                           std::span<const std::int32_t> labels);

/// The fraction of counted rows that were predicted right; 0 when none was counted.
double accuracy(std::span<const std::int64_t> counts);

double macro_f1(std::span<const std::int64_t> counts);

}  // namespace espalier
