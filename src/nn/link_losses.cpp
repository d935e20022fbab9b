// A thread has whole examples.
#include "espalier/nn/link_losses.hpp"

#include "espalier/base/workspace.hpp"
#include "espalier/dense/column_sums.hpp"
#include "interleaved_sum.hpp"
#include "link_loss_table.hpp"

namespace espalier {

namespace {

template <Shares kShares>
ExampleShares<kShares> shares_of(const LinkLossNumbers& numbers, float positive, const float* negative,
                                 std::int64_t count) {
  if constexpr (kShares == Shares::kEqual) return {0, 0, static_cast<double>(count)};
  constexpr bool kAll = kShares == Shares::kOfAll;
  ExampleShares<kShares> share{kAll ? 1 : numbers.temperature, 0, 0};
  share.largest = share.exponent(kAll || count == 0 ? positive : negative[0]);
  for (std::int64_t j = 0; j < count; ++j) {
    const double exponent = share.exponent(negative[j]);
    share.largest = share.largest < exponent ? exponent : share.largest;
  }
  share.total = interleaved_sum(count, [&](std::int64_t j) { return share.power(negative[j]); });
  if constexpr (kAll) share.total += share.power(positive);
  return share;
}

/// The loss of an example; dnegative [count] and *dpositive become scale * gradient.
template <class Rules>
double loss_of_example(const LinkLossNumbers& numbers, float positive, const float* negative,
                       std::int64_t count, double scale, float* dpositive, float* dnegative) {
  const auto p = static_cast<double>(positive);
  const auto share = shares_of<Rules::kShares>(numbers, positive, negative, count);
  const auto of_negative = [&](std::int64_t j) {
    return Rules::of_negative(numbers, p, static_cast<double>(negative[j]), share(negative[j]));
  };
  const double loss = interleaved_sum(count, [&](std::int64_t j) {
    const auto of = of_negative(j);
    dnegative[j] = static_cast<float>(scale * of.gradient);
    return of.loss;
  });
  auto of = Rules::of_positive(numbers, p, share);
  if constexpr (Rules::kDifferences)
    of.gradient = -interleaved_sum(count, [&](std::int64_t j) { return of_negative(j).gradient; });
  *dpositive = static_cast<float>(scale * of.gradient);
  return of.loss + loss;
}

}  // namespace

double link_losses(const Cpu& cpu, const LinkLoss& loss, std::int64_t count, std::int64_t negatives,
                   const float* positive, const float* negative, double scale, float* dpositive,
                   float* dnegative) {
  const LinkLossNumbers numbers{loss.margin, loss.temperature};
  const auto losses = workspace<struct ExampleLosses, double>(static_cast<std::size_t>(count));
  with_rules_of(loss, [&]<class Rules>(Rules) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (count * negatives > 1024)
    for (std::int64_t i = 0; i < count; ++i)
      losses[i] = loss_of_example<Rules>(numbers, positive[i], negative + i * negatives, negatives, scale,
                                         dpositive + i, dnegative + i * negatives);
  });
  double sum = 0;
  sum_over_rows(Cpu{1}, count, {&sum, 1}, [&](std::int64_t i, double* to) { *to += losses[i]; });
  return sum;
}

}  // namespace espalier
