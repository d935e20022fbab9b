// Laws: a driver older than this program's CUDA is named before anything else is asked of it, one
// of the same major version or a later one serves where the program has machine code for the GPU; a
// library that refuses a stream or a workspace ends the job; freed memory is kept unless the GPU is
// shared; what is copied to the GPU may be changed at once; a thread uses the GPU that it says, on
// a stream of its own behind the first thread's; spans of a stage are each added once.
// ranks: 1
#include "espalier/base/cuda.hpp"

#include <cuda_runtime.h>
#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <thread>

#include "cuda_test.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/base/stage_clock.hpp"

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
    unsetenv(kName);
  }
  void TearDown() override {
    for (const char* name : {kName, kProgram, kGpu, kRefusal}) unsetenv(name);
  }
  static constexpr const char *kName = "ESPALIER_EMULATED_DRIVER", *kProgram = "ESPALIER_EMULATED_RUNTIME",
                              *kGpu = "ESPALIER_EMULATED_GPU", *kRefusal = "ESPALIER_EMULATED_REFUSAL";
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

// As 803 for 8.3: the emulated program has machine code for 8.0, 9.0 and 10.3, what nvcc compiled
// for what it was told.
constexpr int kOfProgram[] = {__CUDA_ARCH_LIST__};
bool code_is_there(int gpu) {
  return std::ranges::any_of(kOfProgram,
                             [&](int code) { return code / 100 == gpu / 100 && code % 100 <= gpu % 100; });
}

TEST_F(EmulatedDriver, AnOlderOneOfTheSameMajorVersionServesWhereThereIsMachineCode) {
  setenv(kProgram, "13020", 1);
  for (const char* driver : {"13000", "13010", "13020", "13030", "14000"})
    for (const char* gpu : {"80", "89", "90", "100", "103", "121"}) {
      if (std::atoi(gpu) < kOfProgram[0] / 10) continue;
      SCOPED_TRACE(testing::Message() << "driver " << driver << ", GPU " << gpu);
      setenv(kName, driver, 1);
      setenv(kGpu, gpu, 1);
      const bool serves = code_is_there(10 * std::atoi(gpu)) || std::atoi(driver) >= 13020;
      std::string why;
      EXPECT_EQ(count_gpus(&why), serves ? 2 : 0);
      const auto* const expected = ", and this program for CUDA 13.2: it needs a newer driver";
      EXPECT_EQ(why.find(expected) == std::string::npos, serves) << why;
      if (!serves) EXPECT_TRUE(why.starts_with("emulated GPU has compute capability 1")) << why;
      if (!serves) EXPECT_THROW(Cuda(0), UserError);
    }
  setenv(kGpu, "75", 1);
  std::string why;
  EXPECT_EQ(count_gpus(&why), 0);
  EXPECT_EQ(why, "emulated GPU has compute capability 7.5, and this program is for " +
                     std::to_string(kOfProgram[0] / 100) + ".0 and later");
}

TEST_F(EmulatedDriver, ALibraryThatRefusesEndsTheJob) {
  for (const auto& [call, words] : {std::pair{"cublasSetStream", "cuBLAS refuses a stream"},
                                    {"cusparseSetStream", "cuSPARSE refuses a stream"},
                                    {"cublasSetWorkspace", "cuBLAS refuses a workspace of 33554432 bytes"}}) {
    setenv(kRefusal, call, 1);
    EXPECT_EXIT(Cuda(0), testing::ExitedWithCode(static_cast<int>(ExitCode::kInternal)), words);
  }
}

TEST_F(EmulatedDriver, TheHostTouchesNoDeviceMemory) {
  int number = 7, found = 0, *array = nullptr;
  cudaMalloc(&array, sizeof *array);
  const auto touched = [&] { return *const_cast<volatile int*>(array); };
  EXPECT_EXIT(touched(), testing::KilledBySignal(SIGSEGV), "");
#ifndef __SANITIZE_THREAD__  // which lets a process that was forked begin no threads
  EXPECT_EXIT(std::thread(touched).join(), testing::KilledBySignal(SIGSEGV), "");
#endif
  cudaMemcpyAsync(array, &number, sizeof number, cudaMemcpyDefault, nullptr);
  cudaMemcpyAsync(&found, array, sizeof found, cudaMemcpyDefault, nullptr);
  cudaDeviceSynchronize();
  EXPECT_EQ(found, 7);
  EXPECT_EXIT(touched(), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(*const_cast<volatile int*>(array) = 8, testing::KilledBySignal(SIGSEGV), "");
  cudaFree(array);
}

// Of the emulation: as late as CUDA may be.
TEST_F(EmulatedDriver, CopiesOfTheHostsMemoryAreLate) {
  int number = 1, found = 0, *array = nullptr, *pinned = nullptr;
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaMalloc(&array, sizeof *array);
  cudaMemcpyAsync(array, &number, sizeof number, cudaMemcpyDefault, stream);
  number = 2;
  cudaMemcpyAsync(&found, array, sizeof found, cudaMemcpyDefault, stream);
  cudaStreamSynchronize(stream);
  EXPECT_EQ(found, 2);
  cudaHostAlloc(reinterpret_cast<void**>(&pinned), sizeof *pinned, cudaHostAllocMapped);
  *pinned = 3;
  cudaMemcpyAsync(array, pinned, sizeof *pinned, cudaMemcpyDefault, stream);
  cudaMemcpyAsync(&found, array, sizeof found, cudaMemcpyDefault, stream);
  EXPECT_EQ(found, 3);
  EXPECT_DEATH((*pinned = 4, cudaStreamSynchronize(stream)), "pinned memory was changed");
  EXPECT_DEATH(cudaFreeHost(pinned), "pinned memory is freed");
  cudaStreamSynchronize(stream);
  *pinned = 4;
  cudaStreamSynchronize(stream);
  cudaFreeHost(pinned);
  cudaFree(array);
  cudaStreamDestroy(stream);
}

void write_seven(const Cuda& cuda, int* number) {
  for_each(cuda, "write", 1, [=] __device__(std::int64_t) { *number = 7; });
}

// A process takes one GPU: the last, as a thread begins with number 0.
const Cuda& last_gpu() {
  static const Cuda gpu(count_gpus() - 1);
  return gpu;
}

std::size_t free_of_driver() {
  std::size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  return free;
}

TEST(SharedGpu, FreedMemoryGoesBackToTheDriver) {
  if (count_gpus() == 0) GTEST_SKIP() << "no GPU";
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const auto kept_of_an_array = [&](const Cuda& gpu) {
    gpu.synchronize();
    const auto before = free_of_driver();
    { const DeviceArray<std::byte> array(kBytes); }
    gpu.synchronize();
    return before - free_of_driver();
  };
  last_gpu().share_memory();
  EXPECT_EQ(kept_of_an_array(last_gpu()), 0);
  EXPECT_GE(kept_of_an_array(Cuda(count_gpus() - 1)), kBytes);
}

// More than what lies in pinned memory on its way, in pieces of any size.
TEST(CopyToDevice, LeavesItsSourceToTheHost) {
  if (count_gpus() == 0) GTEST_SKIP() << "no GPU";
  constexpr std::size_t kNumbers = std::size_t{6} << 20;
  const Cuda& gpu = last_gpu();
  for (const std::size_t piece : {std::size_t{1} << 12, std::size_t{(1 << 19) + 1}, kNumbers}) {
    SCOPED_TRACE(piece);
    DeviceArray<int> copied(kNumbers);
    Buffer<int> expected(kNumbers), source;
    for (std::size_t begin = 0; begin < kNumbers; begin += piece) {
      source.resize(std::min(piece, kNumbers - begin));
      for (std::size_t k = 0; k < source.size(); ++k)
        source[k] = expected[begin + k] = static_cast<int>((begin + k) * 2654435761u);
      copy_bytes_to_device(gpu, source.data(), copied.data() + begin, source.size() * sizeof(int));
      std::ranges::fill(source, -1);
    }
    EXPECT_TRUE(download(gpu, copied) == expected);
  }
}

// Each span is added once, to its own path, those that many followed before anyone waits.
TEST(StageClockOfGpu, AddsEachSpanOnce) {
  if (count_gpus() == 0) GTEST_SKIP() << "no GPU";
  StageTimers timers;
  StageClock<Cuda> clock(last_gpu(), timers);
  constexpr std::size_t kSpans = 5 * StageClock<Cuda>::kMostUnread;
  for (int round = 0; round < 2; ++round) {
    timers.clear();
    {
      const StageClock<Cuda>::Scope whole(clock, "whole");
      for (std::size_t k = 0; k < kSpans; ++k)
        const StageClock<Cuda>::Scope within(clock, fmt::format("{}", k));
    }
    EXPECT_TRUE(timers.all().empty());  // the first one had not ended
    for (std::size_t k = 0; k < kSpans; ++k) const StageClock<Cuda>::Scope more(clock, fmt::format("m{}", k));
    EXPECT_EQ(timers.all().size(), 1 + 2 * kSpans - StageClock<Cuda>::kMostUnread);
    clock.collect();
    EXPECT_EQ(timers.all().size(), 1 + 2 * kSpans);
    double within = 0;
    for (std::size_t k = 0; k < kSpans; ++k) within += timers.seconds(fmt::format("{}", k));
    EXPECT_LE(within, timers.seconds("whole"));
    EXPECT_GT(within, 0);
    const auto known = timers.all();
    clock.collect();
    EXPECT_EQ(timers.all(), known);
  }
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

TEST(CudaOfThread, AnotherTakerHasAStreamOfItsOwnToo) {
  if (count_gpus() == 0) GTEST_SKIP() << "no GPU";
  const auto* stream = last_gpu().stream();
  DeviceArray<int> numbers, copied;
  std::optional<Cuda> other;
  std::thread([&] {
    other.emplace(last_gpu().device());
    EXPECT_NE(other->stream(), stream);
    EXPECT_NE(other->blas(), nullptr);
    numbers.resize(1 << 20);
    fill_bytes(*other, numbers.data(), 3, numbers.size() * sizeof(int));
  }).join();
  EXPECT_EQ(other->stream(), stream);
  {
    const CudaGuest here(*other);
    copy(*other, numbers, copied);
  }
  EXPECT_EQ(download(last_gpu(), copied).back(), 0x03030303);
}

TEST(CudaHandover, ReadersFindArraysMadeAndAreWaitedFor) {
  if (count_gpus() == 0) GTEST_SKIP() << "no GPU";
  const Cuda& gpu = last_gpu();
  cudaStream_t reader = nullptr;
  ESPALIER_CUDA(cudaStreamCreateWithFlags(&reader, cudaStreamNonBlocking));
  DeviceArray<int> numbers(1 << 20), copied(1 << 20);
  gpu.synchronize();
  fill_bytes(gpu, numbers.data(), 3, numbers.size() * sizeof(int));
  CudaHandover made(gpu);
  made.let_read(reader);
  ESPALIER_CUDA(cudaMemcpyAsync(copied.data(), numbers.data(), numbers.size() * sizeof(int),
                                cudaMemcpyDefault, reader));
  made.wait_for_readers(gpu);
  fill_bytes(gpu, numbers.data(), 5, numbers.size() * sizeof(int));
  ESPALIER_CUDA(cudaStreamSynchronize(reader));
  EXPECT_EQ(download(gpu, copied).back(), 0x03030303);
  EXPECT_EQ(download(gpu, numbers).back(), 0x05050505);
  ESPALIER_CUDA(cudaStreamDestroy(reader));
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
  EXPECT_EQ(write(first), cudaSuccess);
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
