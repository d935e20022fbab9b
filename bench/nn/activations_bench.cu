// What stands between a network's products on a GPU: ReLU with dropout, forward and backward, and
// the loss with its gradient.
//
// Derivation, for h [m, f] of float32:
//
//     relu_dropout           reads and writes h:                               bytes = 8 m f
//     relu_dropout_backward  reads h and the gradient, writes the gradient,
//                            and adds up its columns:                          bytes = 12 m f
//     softmax_cross_entropy  reads logits and labels, writes the gradient:     bytes = 8 m f + 4 m
//     weighted_cross_entropy the same, and its weights stay in the cache
//     sigmoid_cross_entropy  reads a byte of label per logit:                  bytes = 9 m f
//
// Dropout also computes one Philox4x32 block for every kMasksPerBlock (8) elements, ten rounds of
// two 32-bit products, two sums and four exclusive ors: about ten integer operations per element,
// beside which memory may or may not be its limit. The loss of one minibatch (1024 x 47) is 0.4 MB:
// it takes as long as a launch; the case with 2^18 rows shows the kernel.
//
// Verification: dropout bit for bit against the CPU; the loss's gradient within 1e-6 of it.
#include "espalier/nn/cross_entropy.hpp"
#include "espalier/nn/dropout.hpp"
#include "gpu_rates.hpp"

namespace espalier::bench {
namespace {

constexpr double kRate = 0.5;
const RandomStream kStream{.seed = 1, .purpose = Purpose::kDropout, .epoch = 2, .batch = 3, .layer = 1};

void measure_dropout(GpuBench& bench, const Cuda& cuda, std::int64_t rows, std::int64_t f) {
  auto h = random_matrix(rows, f, 1);
  auto gradient = random_matrix(rows, f, 2);
  auto device_h = on_gpu(cuda, h), device_gradient = on_gpu(cuda, gradient);
  const auto forward = [&] { relu_dropout<float>(cuda, kStream, kRate, device_h); };
  Matrix<float> sums(1, f);
  Matrix<float, Cuda> device_sums(1, f);
  const auto backward = [&] {
    relu_dropout_backward<float>(cuda, kRate, device_h, device_gradient, &device_sums);
  };
  forward();
  backward();
  relu_dropout<float>(all_cores(), kStream, kRate, h);
  relu_dropout_backward<float>(all_cores(), kRate, h, gradient, &sums);
  const auto elements = static_cast<double>(rows * f);
  const auto wrong = count_different(download(cuda, device_h).data, h.data),
             wrong_back = count_different(download(cuda, device_gradient).data, gradient.data) +
                          count_different(download(cuda, device_sums).data, sums.data);
  bench.measure(cuda, {fmt::format("relu_dropout {} x {}", rows, f), "GB/s", 8e-9 * elements, 8 * elements, 0,
                       wrong, forward});
  bench.measure(cuda, {fmt::format("relu_dropout_backward {} x {}", rows, f), "GB/s", 12e-9 * elements,
                       12 * elements, 0, wrong_back, backward});
}

// One loss: on_cpu(logits, dlogits) returns the sum, on_gpu(logits, dlogits, sum) is measured.
template <class OnCpu, class OnGpu>
void measure_loss(GpuBench& bench, const Cuda& cuda, const char* name, const Matrix<float>& logits,
                  double bytes, const OnCpu& on_cpu, const OnGpu& loss_on_gpu) {
  Matrix<float> expected;
  const double loss = on_cpu(logits, expected);
  const auto device_logits = on_gpu(cuda, logits);
  Matrix<float, Cuda> dlogits;
  DeviceArray<double> device_loss(1);
  const auto run = [&] { loss_on_gpu(device_logits, dlogits, device_loss.data()); };
  run();
  const auto wrong = count_far(download(cuda, dlogits).data, expected.data, 1e-6) +
                     count_far(download(cuda, device_loss), Buffer<double>{loss}, 1e-6);
  bench.measure(cuda, {fmt::format("{} {} x {}", name, logits.rows, logits.columns), "GB/s", 1e-9 * bytes,
                       bytes, 0, wrong, run});
}

void measure_losses(GpuBench& bench, const Cuda& cuda, std::int64_t rows, std::int64_t classes) {
  const auto logits = random_matrix(rows, classes, 3);
  Buffer<std::int32_t> labels(static_cast<std::size_t>(rows));
  Buffer<std::uint8_t> several(logits.data.size());
  const Buffer<double> weights(static_cast<std::size_t>(classes), 0.75);
  std::minstd_rand random(4);
  for (auto& label : labels) label = static_cast<std::int32_t>(random() % static_cast<unsigned>(classes));
  for (auto& label : several) label = static_cast<std::uint8_t>(random() % 2);
  const auto device_labels = upload(cuda, labels);
  const auto device_several = upload(cuda, several);
  const auto device_weights = upload(cuda, weights);
  const double scale = 1.0 / static_cast<double>(rows), smoothing = 0.1;
  using Device = Matrix<float, Cuda>;
  const auto bytes = static_cast<double>(rows * (8 * classes + 4));
  measure_loss(
      bench, cuda, "softmax_cross_entropy", logits, bytes,
      [&](const auto& z, auto& d) { return softmax_cross_entropy<float>(all_cores(), z, labels, scale, d); },
      [&](const Device& z, Device& d, double* sum) {
        softmax_cross_entropy(cuda, z, device_labels.data(), scale, d, sum);
      });
  measure_loss(
      bench, cuda, "weighted_cross_entropy", logits, bytes,
      [&](const auto& z, auto& d) {
        return weighted_cross_entropy<float>(all_cores(), z, labels, weights, smoothing, scale, d);
      },
      [&](const Device& z, Device& d, double* sum) {
        weighted_cross_entropy(cuda, z, device_labels.data(), device_weights.data(), smoothing, scale, d,
                               sum);
      });
  measure_loss(
      bench, cuda, "sigmoid_cross_entropy", logits, static_cast<double>(9 * rows * classes),
      [&](const auto& z, auto& d) { return sigmoid_cross_entropy<float>(all_cores(), z, several, scale, d); },
      [&](const Device& z, Device& d, double* sum) {
        sigmoid_cross_entropy(cuda, z, device_several.data(), scale, d, sum);
      });
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  GpuBench bench(argc, argv, "activations and loss; bound: device-to-device copy, bytes read + written");
  if (!bench.has_gpu()) return 0;
  const Cuda cuda(0);
  measure_dropout(bench, cuda, bench.size<std::int64_t>(1 << 17, 203), 256);
  measure_losses(bench, cuda, bench.size<std::int64_t>(1024, 33), 47);
  measure_losses(bench, cuda, bench.size<std::int64_t>(1 << 18, 129), 47);
  return bench.finish();
}
