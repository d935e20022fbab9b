// FastGCN on a GPU makes the CPU's minibatches, bit for bit, in every mode.
// ranks: 1
#include "sample/device_layer_cases.hpp"

namespace espalier {
namespace {

class DeviceFastGcnTest : public CudaTest {};

TEST_F(DeviceFastGcnTest, EqualsTheCpus) {
  expect_same_in_all_modes<std::int32_t>(gpu(), "fastgcn", {13, 70});
}

TEST_F(DeviceFastGcnTest, EqualsTheCpusWithWideIndices) {
  expect_same_in_all_modes<std::int64_t>(gpu(), "fastgcn", {13});
}

// Square roots of very unequal norms: some columns are hit again and again, so draws take
// many rounds.
TEST_F(DeviceFastGcnTest, EqualsTheCpusWhenDrawsTakeManyRounds) {
  const Grid grid(test_world(), 1);
  auto m = layer_matrix<std::int32_t>(grid, LayerMatrix::kAdjacency, 300, true);
  for (std::size_t k = 0; k < m.local.values.size(); ++k)
    m.local.values[k] = k % 50 == 0 ? 3000.0f : 1.0f / static_cast<float>(k % 7 + 1);
  for (const auto mode : {SamplerMode::kPaper, SamplerMode::kReference, SamplerMode::kDebiased})
    expect_same_samples<std::int32_t>(gpu(), "fastgcn", m, {.fanout = {250, 40}, .mode = mode});
}

}  // namespace
}  // namespace espalier
