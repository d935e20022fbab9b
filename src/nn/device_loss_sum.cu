#include "device_loss_sum.hpp"

namespace espalier {

namespace {

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

}  // namespace

void add_losses(const Cuda& cuda, const double* losses, std::int64_t count, double* total) {
  launch(cuda, "add_losses", add_up, dim3(1), dim3(kBlockThreads), losses, count, total);
}

}  // namespace espalier
