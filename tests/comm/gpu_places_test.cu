// ranks: 4 5 6
// Laws of places: those of the (emulated) machine, the same on every rank; GPUs that NVLink joins
// are on one switch; what one rank does not know nobody knows.
#include "espalier/comm/exchange_rounds.hpp"

#include "comm/emulated_switches.hpp"

namespace espalier {
namespace {

class GpuPlacesTest : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (!IsSkipped() && !is_emulated()) GTEST_SKIP() << "the switches are this machine's";
  }
};

// The switch of each rank, -1: not known. Ranks of another node would be a failure.
std::vector<int> found_switches() {
  std::vector<int> switches;
  for (const auto& place : find_gpu_places(test_world(), own_gpu().bus_id())) {
    EXPECT_EQ(place.node, 0);
    switches.push_back(place.pcie_switch);
  }
  return switches;
}

// Of as many ranks as there are.
std::vector<int> first(std::vector<int> switches) {
  switches.resize(static_cast<std::size_t>(test_world().size()));
  return switches;
}

const std::vector<int> kNobodyKnows(6, -1);

TEST_F(GpuPlacesTest, GpusOfASwitchHaveTheNumberOfItsLowestRank) {
  const EmulatedSwitches emulated({5, 2, 5, 2, 2, 9});
  EXPECT_EQ(found_switches(), first({0, 1, 0, 1, 1, 5}));
}

TEST_F(GpuPlacesTest, NvlinkJoinsGpusDirectlyAndOverOthers) {
  {
    const EmulatedSwitches emulated({0, 0, 1, 1, 2, 3}, "3-7");  // no rank has GPU 7
    EXPECT_EQ(found_switches(), first({0, 0, 2, 2, 4, 5}));
  }
  {
    const EmulatedSwitches emulated({0, 0, 1, 1, 2, 3}, "0-3");
    EXPECT_EQ(found_switches(), first({0, 0, 0, 0, 4, 5}));
  }
  {
    const EmulatedSwitches emulated({0, 0, 1, 1, 2, 3}, "0-77,0-78,2-78,4-77,5-79");  // NVSwitches
    EXPECT_EQ(found_switches(), first({0, 0, 0, 0, 0, 5}));
  }
}

TEST_F(GpuPlacesTest, WithoutTheLibrarysAnswerNothingIsKnown) {
  EXPECT_EQ(found_switches(), first(kNobodyKnows));
}

TEST_F(GpuPlacesTest, WhatOneRankDoesNotKnowNobodyKnows) {
  const int last = test_world().size() - 1;
  {
    const EmulatedSwitches emulated({0, 0, 1, 1, 2, 2});
    if (test_world().rank() == last) unsetenv("ESPALIER_EMULATED_SWITCHES");
    EXPECT_EQ(found_switches(), first(kNobodyKnows));
  }
  {
    // One GPU is missing.
    const EmulatedSwitches emulated(std::vector<int>(static_cast<std::size_t>(last)));
    EXPECT_EQ(found_switches(), first(kNobodyKnows));
  }
}

}  // namespace
}  // namespace espalier
