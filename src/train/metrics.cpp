#include "espalier/train/metrics.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "espalier/base/error.hpp"

namespace espalier {

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

namespace {

// The order of scores as that of integers: -0 equals 0, NaN is below -inf.
std::uint32_t rank_of(float score) {
  if (std::isnan(score)) return 0;
  const auto bits = std::bit_cast<std::uint32_t>(score == 0 ? 0.0f : score);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}

double f1(double true_positives, double errors) {
  const double doubled = 2 * true_positives;
  return doubled + errors > 0 ? doubled / (doubled + errors) : 0.0;
}

double mean(double sum, std::int64_t count) {
  return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

// Goes over (rank, label) pairs in one word each, falling, group by group of equal ranks.
void rank_sorted(std::span<const std::uint64_t> falling, LabelRanking& result) {
  std::int64_t above = 0, below = 0;  // with the label, without it, of the groups so far
  for (std::size_t begin = 0, end = 0; begin < falling.size(); begin = end) {
    std::int64_t with = 0, without = 0;
    for (; end < falling.size() && falling[end] >> 1 == falling[begin] >> 1; ++end)
      ((falling[end] & 1) != 0 ? with : without) += 1;
    below += without;
    // Each without here has `above` better ones, and shares the score of `with`.
    result.doubled_pairs += without * (2 * above + with);
    above += with;
    if (with > 0)
      result.average_precision += static_cast<double>(with) / static_cast<double>(result.positives) *
                                  (static_cast<double>(above) / static_cast<double>(above + below));
  }
}

}  // namespace

double LabelRanking::roc_auc() const {
  return static_cast<double>(doubled_pairs) /
         (2 * static_cast<double>(positives) * static_cast<double>(negatives));
}

LabelRanking rank_label(std::span<const float> scores, std::span<const std::uint8_t> labels) {
  LabelRanking result;
  std::vector<std::uint64_t> known;
  known.reserve(scores.size());
  for (std::size_t k = 0; k < scores.size(); ++k) {
    if (labels[k] > 1) continue;
    const bool has = labels[k] == 1, predicted = scores[k] > 0;
    ++(has ? result.positives : result.negatives);
    if (predicted) ++(has ? result.true_positives : result.false_positives);
    known.push_back(std::uint64_t{rank_of(scores[k])} << 1 | (has ? 1 : 0));
  }
  std::ranges::sort(known, std::greater());
  rank_sorted(known, result);
  return result;
}

LabelScores label_scores(std::span<const LabelRanking> labels) {
  LabelScores sums;
  std::int64_t both = 0, known = 0, true_positives = 0, errors = 0;
  for (const auto& label : labels) {
    if (label.positives + label.negatives == 0) continue;
    const auto wrong = label.false_positives + label.false_negatives();
    ++known;
    true_positives += label.true_positives;
    errors += wrong;
    sums.macro_f1 += f1(static_cast<double>(label.true_positives), static_cast<double>(wrong));
    if (!label.has_both()) continue;
    ++both;
    sums.roc_auc += label.roc_auc();
    sums.average_precision += label.average_precision;
  }
  return {.roc_auc = mean(sums.roc_auc, both),
          .average_precision = mean(sums.average_precision, both),
          .micro_f1 = f1(static_cast<double>(true_positives), static_cast<double>(errors)),
          .macro_f1 = mean(sums.macro_f1, known)};
}

}  // namespace espalier
