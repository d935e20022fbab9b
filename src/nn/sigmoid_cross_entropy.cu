// Sigmoid and cross-entropy on the GPU: a warp has a row.
#include "espalier/nn/sigmoid_cross_entropy.hpp"

#include "device_loss_sum.hpp"
#include "espalier/base/device_array.hpp"

namespace espalier {

namespace {

/// losses[row] = the sum of the losses of the row; the row of `gradient` becomes scale * gradient.
/// All lanes of a warp have the same row.
__global__ void __launch_bounds__(kBlockThreads)
    label_losses_of_rows(std::int64_t rows, std::int64_t columns, const float* logits,
                         const std::uint8_t* labels, double scale, float* gradient, double* losses) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t row = warp_of_grid();
  if (row >= rows) return;  // a whole warp
  double sum = 0;
  for (std::int64_t j = lane; j < columns; j += kWarp) {
    const auto at = row * columns + j;
    const auto one = label_loss(static_cast<double>(logits[at]), labels[at]);
    gradient[at] = static_cast<float>(scale * one.gradient);
    sum += one.loss;
  }
  sum = over_warp(sum, [](double a, double b) { return a + b; });
  if (lane == 0) losses[row] = sum;
}

}  // namespace

void sigmoid_cross_entropy(const Cuda& cuda, ConstMatrixView<float, Cuda> logits, const std::uint8_t* labels,
                           double scale, Matrix<float, Cuda>& dlogits, double* loss) {
  dlogits.resize(logits.rows, logits.columns);
  DeviceArray<double> losses(logits.rows);
  launch(cuda, "sigmoid_cross_entropy", label_losses_of_rows, dim3(blocks_for(logits.rows, kBlockWarps)),
         dim3(kBlockThreads), logits.rows, logits.columns, logits.data, labels, scale, dlogits.data.data(),
         losses.data());
  add_losses(cuda, losses.data(), logits.rows, loss);
}

}  // namespace espalier
