// Weighted and smoothed cross-entropy on the GPU: a warp has a row. Exponentials are computed
// twice, in double, rather than kept.
#include "espalier/nn/weighted_cross_entropy.hpp"

#include "device_loss_sum.hpp"
#include "espalier/base/device_array.hpp"
#include "espalier/base/elementary.hpp"

namespace espalier {

namespace {

/// losses[row]; the row of `gradient` becomes scale * gradient. All lanes of a warp have the
/// same row.
__global__ void __launch_bounds__(kBlockThreads, 3)
    weighted_losses_of_rows(std::int64_t rows, std::int64_t classes, const float* logits,
                            const std::int32_t* labels, const double* weights, double smoothing, double scale,
                            float* gradient, double* losses) {
  const auto add = [](double a, double b) { return a + b; };
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t row = warp_of_grid();
  if (row >= rows) return;  // a whole warp
  const float* z = logits + row * classes;
  float* d = gradient + row * classes;
  const std::int32_t label = labels[row];
  if (label < 0 || label >= classes) {
    for (std::int64_t j = lane; j < classes; j += kWarp) d[j] = 0;
    if (lane == 0) losses[row] = label < 0 ? 0 : NAN;
    return;
  }
  float most = z[0];
  for (std::int64_t j = lane; j < classes; j += kWarp) most = most < z[j] ? z[j] : most;
  const auto largest = static_cast<double>(over_warp(most, [](float a, float b) { return a < b ? b : a; }));
  double sum = 0, total = 0;
  for (std::int64_t j = lane; j < classes; j += kWarp) {
    sum += exp_of_nonpositive(static_cast<double>(z[j]) - largest);
    total += weights[j];
  }
  sum = over_warp(sum, add);
  total = over_warp(total, add);
  const double log_sum = log_of_positive(sum) + largest, share = smoothing / static_cast<double>(classes);
  const double of_label = weights[label];
  double loss = 0;
  for (std::int64_t j = lane; j < classes; j += kWarp) {
    const auto logit = static_cast<double>(z[j]);
    loss += weighted_loss(weights[j], j == label, log_sum - logit, smoothing, share);
    d[j] = static_cast<float>(scale * weighted_gradient(weights[j], j == label,
                                                        exp_of_nonpositive(logit - largest) / sum, of_label,
                                                        total, smoothing, share));
  }
  loss = over_warp(loss, add);
  if (lane == 0) losses[row] = loss;
}

}  // namespace

void weighted_cross_entropy(const Cuda& cuda, ConstMatrixView<float, Cuda> logits, const std::int32_t* labels,
                            const double* weights, double smoothing, double scale,
                            Matrix<float, Cuda>& dlogits, double* loss) {
  dlogits.resize(logits.rows, logits.columns);
  DeviceArray<double> losses(logits.rows);
  launch(cuda, "weighted_cross_entropy", weighted_losses_of_rows, dim3(blocks_for(logits.rows, kBlockWarps)),
         dim3(kBlockThreads), logits.rows, logits.columns, logits.data, labels, weights, smoothing, scale,
         dlogits.data.data(), losses.data());
  add_losses(cuda, losses.data(), logits.rows, loss);
}

}  // namespace espalier
