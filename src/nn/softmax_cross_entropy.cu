// Softmax and cross-entropy on the GPU: a warp has a row. Exponentials are computed twice, in
// double, rather than kept.
#include "espalier/nn/softmax_cross_entropy.hpp"

#include "device_loss_sum.hpp"
#include "espalier/base/device_array.hpp"
#include "espalier/base/elementary.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

namespace {

/// losses[row]; the row of `gradient` becomes scale * (softmax - onehot). All lanes of a warp
/// have the same row. 4 blocks of a multiprocessor: told no number, ptxas spills to make room
/// for a fifth.
__global__ void __launch_bounds__(kBlockThreads, 4)
    losses_of_rows(std::int64_t rows, std::int64_t classes, const float* logits, const std::int32_t* labels,
                   double scale, float* gradient, double* losses) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t row = warp_of_grid();
  if (row >= rows) return;  // a whole warp
  const float* z = logits + row * classes;
  float* d = gradient + row * classes;
  const std::int32_t label = labels[row];
  if (label < 0) {
    for (std::int64_t j = lane; j < classes; j += kWarp) d[j] = 0;
    if (lane == 0) losses[row] = 0;
    return;
  }
  float most = z[0];
  for (std::int64_t j = lane; j < classes; j += kWarp) most = most < z[j] ? z[j] : most;
  const auto largest = static_cast<double>(over_warp(most, [](float a, float b) { return a < b ? b : a; }));
  double sum = 0;
  for (std::int64_t j = lane; j < classes; j += kWarp)
    sum += exp_of_nonpositive(static_cast<double>(z[j]) - largest);
  sum = over_warp(sum, [](double a, double b) { return a + b; });
  for (std::int64_t j = lane; j < classes; j += kWarp)
    d[j] = static_cast<float>(
        scale * (exp_of_nonpositive(static_cast<double>(z[j]) - largest) / sum - (j == label ? 1.0 : 0.0)));
  if (lane == 0)
    losses[row] = label < classes ? log_of_positive(sum) + largest - static_cast<double>(z[label]) : NAN;
}

}  // namespace

void softmax_cross_entropy(const Cuda& cuda, ConstMatrixView<float, Cuda> logits, const std::int32_t* labels,
                           double scale, Matrix<float, Cuda>& dlogits, double* loss) {
  dlogits.resize(logits.rows, logits.columns);
  DeviceArray<double> losses(logits.rows);
  launch(cuda, "softmax_cross_entropy", losses_of_rows, dim3(blocks_for(logits.rows, kBlockWarps)),
         dim3(kBlockThreads), logits.rows, logits.columns, logits.data, labels, scale, dlogits.data.data(),
         losses.data());
  add_losses(cuda, losses.data(), logits.rows, loss);
}

}  // namespace espalier
