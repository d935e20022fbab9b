// ranks: 1
// Laws: with factors rounded to TF32 or bfloat16 a network's logits and gradients stay close to
// those of float32, and are not the same. A file of its own, because each precision takes a Cuda,
// and arrays are given back on the stream of the one made last.
#include "nn/device_case.hpp"

namespace espalier {
namespace {

class PrecisionCuda : public CudaTest {};

DeviceCase::Result results_in(Precision precision, const std::string& kind) {
  const Cuda gpu(0, precision);
  DeviceCase c(gpu, {kind, 2, 100, 64, 16, 0.3, 0, "layer"}, {300, 120, 50}, 8);
  auto result = c.on_gpu();
  gpu.synchronize();
  return result;
}

/// Each factor is rounded by half a unit of its last bit at most, 2^-9 in bfloat16 and 2^-11 in
/// TF32: 2^-8 (2^-10) for a product of two, and a second layer at most doubles it. Of a gradient,
/// the elements behind a ReLU come or go whose argument was that close to 0: the share of them is
/// the tolerance, the norm of what they change its square root.
TEST_F(PrecisionCuda, RoundedFactorsGiveCloseResults) {
  for (const std::string kind : {"sage", "gcn"}) {
    const auto exact = results_in(Precision::kFp32, kind);
    for (const auto& [precision, tolerance] :
         {std::pair(Precision::kTf32, 0x1p-9), std::pair(Precision::kBf16, 0x1p-7)}) {
      const auto rounded = results_in(precision, kind);
      EXPECT_LT(relative_difference(rounded.logits, in_double(exact.logits), 0), tolerance);
      EXPECT_NEAR(rounded.loss, exact.loss, tolerance * exact.loss);
      for (std::size_t k = 0; k < exact.gradients.size(); ++k)
        EXPECT_LT(relative_difference(rounded.gradients[k], in_double(exact.gradients[k]), 0),
                  std::sqrt(tolerance))
            << kind << " gradient " << k;
    }
  }
}

}  // namespace
}  // namespace espalier
