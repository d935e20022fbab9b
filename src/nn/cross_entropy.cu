// Cross-entropies on the GPU: a warp has a row. Exponentials are computed twice, in double, rather
// than kept.
#include "espalier/nn/cross_entropy.hpp"

#include "device_interleaved_sum.hpp"
#include "espalier/base/device_array.hpp"
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

/// *total = the sum of `count` losses, by one block: each thread adds every 256th, then pairs of
/// threads theirs, so the order depends on `count` only.
__global__ void __launch_bounds__(kBlockThreads)
    add_up(const double* losses, std::int64_t count, double* total) {
  __shared__ double sums[kBlockThreads];
  const auto t = static_cast<int>(threadIdx.x);
  double sum = 0;
#pragma unroll 4
  for (std::int64_t i = t; i < count; i += kBlockThreads) sum += losses[i];
  sums[t] = sum;
  for (int half = kBlockThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) sums[t] += sums[t + half];
  }
  if (t == 0) *total = sums[0];
}

/// *loss = the sum of the losses that a kernel gives to the rows.
template <class... Parameters, class... Arguments>
void sum_losses(const Cuda& cuda, const char* name, void (*kernel)(Parameters...),
                ConstMatrixView<float, Cuda> logits, Matrix<float, Cuda>& dlogits, double* loss,
                const Arguments&... arguments) {
  dlogits.resize(logits.rows, logits.columns);
  DeviceArray<double> losses(logits.rows);
  launch(cuda, name, kernel, dim3(blocks_for(logits.rows, kBlockWarps)), dim3(kBlockThreads), logits.rows,
         logits.columns, logits.data, arguments..., dlogits.data.data(), losses.data());
  launch(cuda, "add_losses", add_up, dim3(1), dim3(kBlockThreads), losses.data(), logits.rows, loss);
}

}  // namespace

void softmax_cross_entropy(const Cuda& cuda, ConstMatrixView<float, Cuda> logits, const std::int32_t* labels,
                           double scale, Matrix<float, Cuda>& dlogits, double* loss) {
  sum_losses(cuda, "softmax_cross_entropy", losses_of_rows, logits, dlogits, loss, labels, scale);
}

void weighted_cross_entropy(const Cuda& cuda, ConstMatrixView<float, Cuda> logits, const std::int32_t* labels,
                            const double* weights, double smoothing, double scale,
                            Matrix<float, Cuda>& dlogits, double* loss) {
  sum_losses(cuda, "weighted_cross_entropy", weighted_losses_of_rows, logits, dlogits, loss, labels, weights,
             smoothing, scale);
}

void sigmoid_cross_entropy(const Cuda& cuda, ConstMatrixView<float, Cuda> logits, const std::uint8_t* labels,
                           double scale, Matrix<float, Cuda>& dlogits, double* loss) {
  sum_losses(cuda, "sigmoid_cross_entropy", label_losses_of_rows, logits, dlogits, loss, labels, scale);
}

}  // namespace espalier
