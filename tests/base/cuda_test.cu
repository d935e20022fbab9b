// Laws: a driver older than this program's CUDA is named before anything else is asked of it, one
// of the same major version or a later one serves; a thread uses the GPU that it says, on a stream
// of its own behind the first thread's.
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

// A process takes one GPU: the last, as a thread begins with number 0.
const Cuda& last_gpu() {
  static const Cuda gpu(count_gpus() - 1);
  return gpu;
}

TEST(CudaOfThread, IsTheOneThatItUses) {
  if (count_gpus() < 2) GTEST_SKIP() << "no second GPU";
  DeviceArray<int> number;
  last_gpu();
  number.resize(1);
  const auto write = [&] {
    last_gpu().use();
    write_seven(last_gpu(), number.data());
    CudaMoment moment(last_gpu());
    moment.record(last_gpu());
    last_gpu().synchronize();
  };
  std::thread(write).join();
  EXPECT_EQ(download(last_gpu(), number)[0], 7);
}

TEST(CudaOfThread, SeesWhatWasGivenBeforeAndHasAStreamOfItsOwn) {
  if (count_gpus() == 0) GTEST_SKIP() << "no GPU";
  const Cuda& gpu = last_gpu();
  DeviceArray<int> numbers(1 << 20), copied;
  fill_bytes(gpu, numbers.data(), 3, numbers.size() * sizeof(int));
  const auto* stream = gpu.stream();
  std::thread([&] {
    gpu.use();
    EXPECT_NE(gpu.stream(), stream);
    copy(gpu, numbers, copied);
    EXPECT_EQ(download(gpu, copied).back(), 0x03030303);
    fill_bytes(gpu, copied.data(), 5, copied.size() * sizeof(int));
    gpu.synchronize();
  }).join();
  EXPECT_EQ(gpu.stream(), stream);
  EXPECT_EQ(download(gpu, copied).back(), 0x05050505);
}

TEST_F(EmulatedDriver, AnArrayIsRefusedToAStreamThatHasNotWaitedForItsUsers) {
  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t used = nullptr;
  int* array = nullptr;
  cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&used, cudaEventDisableTiming);
  const auto write = [&](cudaStream_t stream) { return cudaMemsetAsync(array, 0, 64, stream); };
  const auto read = [&](cudaStream_t stream) {
    int number = 0;
    return cudaMemcpyAsync(&number, array, sizeof number, cudaMemcpyDefault, stream);
  };
  EXPECT_EQ(cudaMallocAsync(reinterpret_cast<void**>(&array), 64, first), cudaSuccess);
  EXPECT_EQ(read(second), cudaErrorInvalidValue);
  EXPECT_EQ(write(second), cudaErrorInvalidValue);
  cudaEventRecord(used, first);
  cudaStreamWaitEvent(second, used, 0);
  EXPECT_EQ(read(second), cudaSuccess);
  EXPECT_EQ(read(first), cudaSuccess) << "who only reads waits for none who does";
  EXPECT_EQ(write(first), cudaErrorInvalidValue);
  cudaStreamSynchronize(second);
  EXPECT_EQ(write(first), cudaSuccess);
  cudaFreeAsync(array, first);
  cudaEventDestroy(used);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
  cudaGetLastError();
}

}  // namespace
}  // namespace espalier
