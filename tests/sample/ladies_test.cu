// LADIES on a GPU makes the CPU's minibatches, bit for bit, in every mode; weights that do not fit
// in 64 bits are told.
// ranks: 1
#include "../../src/sample/ladies.inl.hpp"

#include "sample/device_layer_cases.hpp"

namespace espalier {
namespace {

class DeviceLadiesTest : public CudaTest {};

TEST_F(DeviceLadiesTest, EqualsTheCpus) {
  expect_same_in_all_modes<std::int32_t>(gpu(), "ladies", {13, 70});
}

TEST_F(DeviceLadiesTest, EqualsTheCpusWithWideIndices) {
  expect_same_in_all_modes<std::int64_t>(gpu(), "ladies", {13});
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
