#include "label_evaluator.hpp"

#include <bit>

namespace espalier {

namespace {

constexpr std::size_t kNumbers = 6;  // of a LabelRanking

std::array<std::int64_t, kNumbers> numbers_of(const LabelRanking& ranking) {
  return {ranking.positives,      ranking.negatives,
          ranking.doubled_pairs,  std::bit_cast<std::int64_t>(ranking.average_precision),
          ranking.true_positives, ranking.false_positives};
}

LabelRanking ranking_from(const std::int64_t* numbers) {
  return {numbers[0], numbers[1], numbers[2], std::bit_cast<double>(numbers[3]), numbers[4], numbers[5]};
}

Metrics metrics_of(std::span<const LabelRanking> rankings, std::int64_t vertices) {
  const auto scores = label_scores(rankings);
  return {{{"roc_auc", scores.roc_auc},
           {"average_precision", scores.average_precision},
           {"micro_f1", scores.micro_f1},
           {"macro_f1", scores.macro_f1}},
          vertices};
}

bool is_known(std::uint8_t label) {
  return label <= 1;
}

}  // namespace

LabelEvaluator::LabelEvaluator(const Grid& grid, const LabelTargets& targets)
    : world_(grid.world()), columns_(targets.outputs) {
  for (const std::span<const std::int64_t> rows : targets.evaluated) {
    const ColumnDeal deal(world_, std::ssize(rows), columns_);
    const auto label_at = [&](std::int64_t i, std::int64_t j) {
      return targets.evaluated_labels(rows[i], j);
    };
    auto labels = deal.deal<std::uint8_t>(label_at, "setup");
    auto& count = counts_[splits_.size()];
    for (const auto row : rows) {
      const auto* first = targets.evaluated_labels.row(row);
      count += std::any_of(first, first + columns_, is_known);
    }
    splits_.push_back({deal, std::move(labels)});
  }
  world_.all_reduce(std::span<std::int64_t>(counts_), Reduction::kSum, "setup");
}

// Of my columns.
std::vector<LabelRanking> LabelEvaluator::rank_columns(const EvaluatedSplit& split, const Matrix<float>& rows,
                                                       int threads) const {
  const auto logit_at = [&](std::int64_t i, std::int64_t j) { return rows(i, j); };
  const auto scores = split.deal.deal<float>(logit_at, "evaluate");
  const auto length = static_cast<std::size_t>(scores.columns);
  std::vector<LabelRanking> rankings(static_cast<std::size_t>(scores.rows));
#pragma omp parallel for schedule(dynamic) num_threads(threads)
  for (std::int64_t k = 0; k < scores.rows; ++k)
    rankings[k] = rank_label({scores.row(k), length}, {split.labels.row(k), length});
  return rankings;
}

Evaluation LabelEvaluator::evaluate(const std::array<Matrix<float>, 3>& rows, int threads) const {
  const auto of_split = static_cast<std::size_t>(columns_) * kNumbers;
  std::vector<std::int64_t> numbers(splits_.size() * of_split);
  for (std::size_t s = 0; s < splits_.size(); ++s) {
    auto to = numbers.begin() + static_cast<std::ptrdiff_t>(s * of_split) +
              splits_[s].deal.begin() * static_cast<std::int64_t>(kNumbers);
    for (const auto& ranking : rank_columns(splits_[s], rows[s], threads))
      to = std::ranges::copy(numbers_of(ranking), to).out;
  }
  world_.all_reduce(std::span<std::int64_t>(numbers), Reduction::kSum, "evaluate");
  std::array<Metrics, 3> metrics;
  for (std::size_t s = 0; s < splits_.size(); ++s) {
    std::vector<LabelRanking> rankings;
    for (std::int64_t k = 0; k < columns_; ++k)
      rankings.push_back(ranking_from(&numbers[s * of_split + static_cast<std::size_t>(k) * kNumbers]));
    metrics[s] = metrics_of(rankings, counts_[s]);
  }
  return {metrics[0], metrics[1], metrics[2], {}};
}

}  // namespace espalier
