// LADIES on a GPU makes the CPU's minibatches, bit for bit: in every mode, for every number of batches at once; weights
// that do not fit in 64 bits end the job.
// ranks: 1
#include "espalier/sample/ladies.hpp"

#include "sample/device_layer_cases.hpp"

namespace espalier {
namespace {

class DeviceLadiesTest : public CudaTest {};

template <class Index>
MakeOnGpu<Index> with_budget(const Cuda& gpu, std::int64_t budget) {
  return [&gpu, budget](const DeviceDistCsr<Index>& m, const SamplerShape& shape) {
    return make_ladies(gpu, m, shape, budget);
  };
}

TEST_F(DeviceLadiesTest, EqualsTheCpus) {
  expect_same_in_all_modes(gpu(), "ladies", with_budget<std::int32_t>(gpu(), 0), {13, 70});
}

TEST_F(DeviceLadiesTest, EqualsTheCpusOneBatchAtATime) {
  expect_same_in_all_modes(gpu(), "ladies", with_budget<std::int64_t>(gpu(), 1), {13});
}

TEST_F(DeviceLadiesTest, EqualsTheCpusSomeBatchesAtATime) {
  const Grid grid(test_world(), 1);
  const auto m = layer_matrix<std::int32_t>(grid, LayerMatrix::kGcn, 300, true);
  for (const std::int64_t batches : {2, 5})
    expect_same_samples<std::int32_t>(gpu(), "ladies", m, {.fanout = {15, 100}},
                                      with_budget<std::int32_t>(gpu(), batches * 8 * 300));
}

TEST_F(DeviceLadiesTest, WeightsFitOrAreToldNotTo) {
  bool overflow = false;
  EXPECT_EQ(ladies_weight((std::uint64_t{1} << 32) - 1, SamplerMode::kPaper, &overflow),
            std::uint64_t{0xfffffffe00000001u});
  EXPECT_EQ(ladies_weight(std::uint64_t{1} << 40, SamplerMode::kDebiased, &overflow), std::uint64_t{1} << 40);
  EXPECT_FALSE(overflow);
  ladies_weight(std::uint64_t{1} << 32, SamplerMode::kPaper, &overflow);
  EXPECT_TRUE(overflow);
}

}  // namespace
}  // namespace espalier
