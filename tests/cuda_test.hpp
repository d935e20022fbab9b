// What tests of the GPU share: a GPU, or a skip.
#pragma once

#include <gtest/gtest.h>

#include "espalier/base/device_array.hpp"

namespace espalier {

/// The GPU that tests run on: number 0. One for the whole process.
inline const Cuda& test_gpu() {
  static const Cuda gpu(0);
  return gpu;
}

/// Base of test fixtures: without a GPU each test is skipped.
class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (count_gpus(&why) == 0) GTEST_SKIP() << "no GPU: " << why;
  }
  const Cuda& gpu() const { return test_gpu(); }
};

}  // namespace espalier
