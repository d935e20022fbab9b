// One update by Adam on a GPU.
//
// Derivation: an element reads its weight, gradient and two moments and writes weight and moments:
// 7 float32 numbers.
//
//     bytes = 28 elements
//
// The network of a step (100 x 256, 256 x 256, 256 x 47, twice, and biases: 0.2 M weights) is 5.8
// MB, which lies in the cache: the first case takes as long as its launches, and its ratio says
// only that. The second, 64 M weights, shows the kernel.
//
// Verification: after three updates bit for bit the CPU's weights.
#include "espalier/train/optimizer.hpp"

#include "gpu_rates.hpp"

namespace espalier::bench {
namespace {

struct Shapes {
  const char* name;
  std::vector<std::pair<std::int64_t, std::int64_t>> of;
};

std::vector<Parameter<float>> make_parameters(const Shapes& shapes) {
  std::vector<Parameter<float>> parameters;
  for (const auto& [rows, columns] : shapes.of) {
    Parameter<float> parameter;
    parameter.name = fmt::format("w{}", parameters.size());
    parameter.value = random_matrix(rows, columns, static_cast<unsigned>(parameters.size() + 1));
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

void measure_adam(GpuBench& bench, const Cuda& cuda, const Shapes& shapes) {
  auto parameters = make_parameters(shapes);
  std::vector<Parameter<float, Cuda>> device_parameters(parameters.size());
  std::vector<Matrix<float>> gradients;
  std::vector<Matrix<float, Cuda>> device_gradients;
  double elements = 0;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    const auto& value = parameters[k].value;
    device_parameters[k].name = parameters[k].name;
    upload(cuda, value, device_parameters[k].value);
    gradients.push_back(random_matrix(value.rows, value.columns, static_cast<unsigned>(50 + k)));
    device_gradients.push_back(on_gpu(cuda, gradients.back()));
    elements += static_cast<double>(value.data.size());
  }
  Optimizer<float> adam(Cpu{}, {}, parameters);
  Optimizer<float, Cuda> device_adam(cuda, {}, device_parameters);
  const auto run = [&] { device_adam.step(cuda, 0.003, device_gradients, device_parameters); };
  for (int step = 0; step < 3; ++step) {
    adam.step(all_cores(), 0.003, gradients, parameters);
    run();
  }
  std::int64_t wrong = 0;
  for (std::size_t k = 0; k < parameters.size(); ++k)
    wrong += count_different(download(cuda, device_parameters[k].value).data, parameters[k].value.data);
  bench.measure(
      cuda, {fmt::format("adam, {}", shapes.name), "GB/s", 28e-9 * elements, 28 * elements, 0, wrong, run});
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  using namespace espalier::bench;
  GpuBench bench(argc, argv, "optimiser; bound: device-to-device copy, bytes read + written");
  if (!bench.has_gpu()) return 0;
  const Cuda cuda(0);
  measure_adam(
      bench, cuda,
      {"network of a step",
       {{100, 256}, {100, 256}, {1, 256}, {256, 256}, {256, 256}, {1, 256}, {256, 47}, {256, 47}, {1, 47}}});
  measure_adam(bench, cuda, {"one large matrix", {{bench.size<std::int64_t>(1 << 18, 100), 256}}});
  return bench.finish();
}
