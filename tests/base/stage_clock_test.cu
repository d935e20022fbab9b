// Laws: what is done within a stage is in a range of the profiler that has the stage's name, inside
// of the ranges around it; a range ends with its stage, and its seconds stand under its path.
#include "espalier/base/stage_clock.hpp"

#include <nvtx3/nvToolsExt.h>

#include "cuda_test.hpp"

namespace espalier {
namespace {

using Words = std::vector<std::string>;

class StageRanges : public CudaTest {
 protected:
  static Words open() {
#ifdef ESPALIER_EMULATED_RANGES
    return emulated_ranges;
#else
    return {};
#endif
  }
  void SetUp() override {
#ifdef ESPALIER_EMULATED_RANGES
    CudaTest::SetUp();
#else
    GTEST_SKIP() << "ranges are known to the profiler alone";
#endif
  }
};

TEST_F(StageRanges, AreOpenWhileTheStageIs) {
  StageTimers timers;
  StageClock<Cuda> clock(gpu(), timers);
  EXPECT_EQ(open(), Words());
  {
    const StageClock<Cuda>::Scope forward(clock, std::string_view("forward step").substr(0, 7));
    EXPECT_EQ(open(), Words({"forward"}));
    {
      const ProfilerRange launcher("gemm");
      EXPECT_EQ(open(), Words({"forward", "gemm"}));
    }
    EXPECT_EQ(open(), Words({"forward"}));
  }
  {
    const StageClock<Cuda>::Scope backward(clock, "backward");
    EXPECT_EQ(open(), Words({"backward"}));
  }
  EXPECT_EQ(open(), Words());
  clock.collect();
  EXPECT_GE(timers.seconds("forward"), 0);
}

}  // namespace
}  // namespace espalier
