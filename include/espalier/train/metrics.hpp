// Metrics of classes, accuracy and macro-F1, and of labels, ROC-AUC and average precision.
//
// Of classes: from integer counts, which ranks add with one all-reduce.
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

inline constexpr std::size_t kTruePositive = 0, kFalsePositive = 1, kFalseNegative = 2;

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

// How well scores order vertices by a label of 0 or 1, from the sorted scores of all of them.
//
// P vertices have the label, N have not; equal scores count as scikit-learn counts them.
//
//     ROC-AUC = (pairs of one of P and one of N with the larger score on P, ties half) / (P N)
//     AP = sum over distinct scores, falling, of (recall - recall before) precision
//
// of what has this score or more. Pairs are counted in integers, and vertices with equal scores
// enter together, so both depend on the set of (score, label) only, not on its order. roc_auc_score
// and average_precision_score of scikit-learn, without their approximations.

/// What is known of one label of a split.
struct LabelRanking {
  std::int64_t positives = 0, negatives = 0;  ///< P, N
  std::int64_t doubled_pairs = 0;             ///< 2 P N ROC-AUC
  double average_precision = 0;               ///< 0 where nothing has the label
  /// Of the prediction that a score above 0 means 1.
  std::int64_t true_positives = 0, false_positives = 0;

  std::int64_t false_negatives() const { return positives - true_positives; }
  /// Do vertices of both kinds exist? Otherwise neither of the two is defined.
  bool has_both() const { return positives > 0 && negatives > 0; }
  double roc_auc() const;
};

/// Of scores[k] with labels[k]: 1, 0, or unknown, which does not count. NaN ranks below
/// all numbers.
LabelRanking rank_label(std::span<const float> scores, std::span<const std::uint8_t> labels);

/// What micro and macro F1, mean ROC-AUC and mean average precision are, over labels: the last two
/// over those with both kinds (OGB's rule), NaN where none has; macro-F1 over those that anything
/// is known of, with 0 where tp + fp + fn is 0.
struct LabelScores {
  double roc_auc = 0, average_precision = 0, micro_f1 = 0, macro_f1 = 0;
};
LabelScores label_scores(std::span<const LabelRanking> labels);

}  // namespace espalier
