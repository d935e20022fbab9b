// A warp has an example. Shares are computed twice rather than kept.
#include "espalier/nn/link_losses.hpp"

#include "device_interleaved_sum.hpp"
#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/dense/device_column_sums.hpp"
#include "link_loss_rules.hpp"

namespace espalier {

namespace {

struct ByWarp {
  template <class Term>
  __device__ double add(std::int64_t count, const Term& term) const {
    return sum_by_warp(count, term);
  }
  template <class Number>
  __device__ double largest(double first, std::int64_t count, const Number& number) const {
    for (std::int64_t j = threadIdx.x % kWarp; j < count; j += kWarp) {
      const double next = number(j);
      first = first < next ? next : first;
    }
    return over_warp(first, [](double a, double b) { return a < b ? b : a; });
  }
};

template <class Rules>
__global__ void __launch_bounds__(kBlockThreads)
    losses_of_examples(LinkLossNumbers numbers, std::int64_t examples, std::int64_t count,
                       const float* positive, const float* negatives, double scale, float* dpositive,
                       float* dnegatives, double* losses) {
  const std::int64_t i = warp_of_grid();
  if (i >= examples) return;  // a whole warp
  const auto of = loss_of_example<Rules>(ByWarp{}, numbers, positive[i], negatives + i * count, count, scale,
                                         dnegatives + i * count);
  if (threadIdx.x % kWarp != 0) return;
  dpositive[i] = static_cast<float>(scale * of.gradient);
  losses[i] = of.loss;
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
