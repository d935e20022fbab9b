// Laws: a driver older than this program's CUDA is named before anything else is asked of it, one
// of the same major version or a later one serves; a thread uses the GPU that it says.
// ranks: 1
#include "espalier/base/cuda.hpp"

#include <cuda_runtime.h>

#include <cstdlib>
#include <thread>

#include "cuda_test.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {
namespace {

// The emulated GPUs and their driver. Before the first call of CUDA.
const int emulated_gpus = setenv("ESPALIER_EMULATED_GPUS", "2", 0);

class EmulatedDriver : public testing::Test {
 protected:
  void SetUp() override {
    setenv(kName, "1000", 1);
    int version = 0;
    if (cudaDriverGetVersion(&version) != cudaSuccess || version != 1000) GTEST_SKIP() << "a real driver";
  }
  void TearDown() override { unsetenv(kName); }
  static constexpr const char* kName = "ESPALIER_EMULATED_DRIVER";
};

TEST_F(EmulatedDriver, AnOlderOneIsNamed) {
  for (const auto& [version, expected] : {std::pair{"12040",
                                                    "the driver is for CUDA 12.4, and this program for "
                                                    "CUDA 13.0: "},
                                          {"11080", "the driver is for CUDA 11.8, "},
                                          {"0", "no driver"}}) {
    setenv(kName, version, 1);
    std::string why;
    EXPECT_EQ(count_gpus(&why), 0) << version;
    EXPECT_TRUE(why.starts_with(expected)) << why;
    EXPECT_EQ(count_gpus(), 0);
    EXPECT_THROW(Cuda(0), UserError) << version;
    EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "no error is left to a later call";
  }
}

TEST_F(EmulatedDriver, OneOfTheSameMajorVersionOrALaterOneServes) {
  for (const char* version : {"13000", "13020", "14000"}) {
    setenv(kName, version, 1);
    EXPECT_EQ(count_gpus(), 2) << version;
  }
}

void write_seven(const Cuda& cuda, int* number) {
  for_each(cuda, "write", 1, [=] __device__(std::int64_t) { *number = 7; });
}

// A stream is its GPU's, and a thread begins with number 0.
TEST(CudaOfThread, IsTheOneThatItUses) {
  if (count_gpus() < 2) GTEST_SKIP() << "no second GPU";
  const Cuda second(1);
  DeviceArray<int> number(1);
  const auto write = [&] {
    second.use();
    write_seven(second, number.data());
    CudaMoment moment(second);
    moment.record(second);
    second.synchronize();
  };
  std::thread(write).join();
  EXPECT_EQ(download(second, number)[0], 7);
}

}  // namespace
}  // namespace espalier
