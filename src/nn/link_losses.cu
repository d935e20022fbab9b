// A warp has an example. Shares are computed twice rather than kept.
#include "espalier/nn/link_losses.hpp"

#include "device_interleaved_sum.hpp"
#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/dense/device_column_sums.hpp"
#include "link_loss_table.hpp"

namespace espalier {

namespace {

template <Shares kShares>
__device__ ExampleShares<kShares> shares_of(const LinkLossNumbers& numbers, float positive,
                                            const float* negative, std::int64_t count) {
  ExampleShares<kShares> share{1, 0, static_cast<double>(count)};
  if constexpr (kShares != Shares::kEqual) {
    constexpr bool kAll = kShares == Shares::kOfAll;
    if (!kAll) share.by = numbers.temperature;
    double largest = share.exponent(kAll || count == 0 ? positive : negative[0]);
    for (std::int64_t j = threadIdx.x % kWarp; j < count; j += kWarp) {
      const double exponent = share.exponent(negative[j]);
      largest = largest < exponent ? exponent : largest;
    }
    share.largest = over_warp(largest, [](double a, double b) { return a < b ? b : a; });
    share.total = sum_by_warp(count, [&](std::int64_t j) { return share.power(negative[j]); });
    if (kAll) share.total += share.power(positive);
  }
  return share;
}

template <class Rules>
__global__ void __launch_bounds__(kBlockThreads)
    losses_of_examples(LinkLossNumbers numbers, std::int64_t examples, std::int64_t count,
                       const float* positive, const float* negatives, double scale, float* dpositive,
                       float* dnegatives, double* losses) {
  const std::int64_t i = warp_of_grid();
  if (i >= examples) return;  // a whole warp
  const float* const negative = negatives + i * count;
  float* const dnegative = dnegatives + i * count;
  const auto p = static_cast<double>(positive[i]);
  const auto share = shares_of<Rules::kShares>(numbers, positive[i], negative, count);
  const auto of_negative = [&](std::int64_t j) {
    return Rules::of_negative(numbers, p, static_cast<double>(negative[j]), share(negative[j]));
  };
  const double loss = sum_by_warp(count, [&](std::int64_t j) {
    const auto of = of_negative(j);
    dnegative[j] = static_cast<float>(scale * of.gradient);
    return of.loss;
  });
  auto of = Rules::of_positive(numbers, p, share);
  if constexpr (Rules::kDifferences)
    of.gradient = -sum_by_warp(count, [&](std::int64_t j) { return of_negative(j).gradient; });
  if (threadIdx.x % kWarp != 0) return;
  dpositive[i] = static_cast<float>(scale * of.gradient);
  losses[i] = of.loss + loss;
}

}  // namespace

void link_losses(const Cuda& cuda, const LinkLoss& loss, std::int64_t count, std::int64_t negatives,
                 const float* positive, const float* negative, double scale, float* dpositive,
                 float* dnegative, double* sum) {
  DeviceArray<double> losses(static_cast<std::size_t>(count));
  with_rules_of(loss, [&]<class Rules>(Rules) {
    launch(cuda, "link_losses", losses_of_examples<Rules>, dim3(blocks_for(count, kBlockWarps)),
           dim3(kBlockThreads), LinkLossNumbers{loss.margin, loss.temperature}, count, negatives, positive,
           negative, scale, dpositive, dnegative, losses.data());
  });
  const double* const of = losses.data();
  sum_over_rows(
      cuda, count, 1, [=] __device__(std::int64_t i, std::int64_t) { return of[i]; },
      [=] __device__(std::int64_t, double total) { *sum = total; });
}

}  // namespace espalier
