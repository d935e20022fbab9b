// Laws: work that is run apart gives its exit code and shared memory, and nothing else: no print,
// no change of memory, no signal that ends this process.
#include "espalier/base/process.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace espalier {
namespace {

TEST(RunInChildProcess, GivesTheCodeAndSharedMemory) {
  const SharedMemory shared(sizeof(int));
  auto* const number = static_cast<int*>(shared.data());
  EXPECT_EQ(*number, 0);
  int mine = 1;
  const auto ending = run_in_child_process([&] {
    *number = 7;
    mine = 2;
    return 3;
  });
  EXPECT_EQ(ending.code, 3);
  EXPECT_FALSE(ending.good());
  EXPECT_EQ(*number, 7);
  EXPECT_EQ(mine, 1);
  EXPECT_TRUE(run_in_child_process([] { return 0; }).good());
}

TEST(RunInChildProcess, SurvivesEveryEnd) {
  EXPECT_EQ(run_in_child_process([]() -> int { std::abort(); }).signal, SIGABRT);
  EXPECT_EQ(run_in_child_process([]() -> int { std::_Exit(9); }).code, 9);
  EXPECT_EQ(run_in_child_process([]() -> int { throw std::runtime_error("x"); }).code, 1);
  EXPECT_EQ(run_in_child_process([] { return raise(SIGTERM); }).code, 0)
      << "whoever ends this process ends it";
}

TEST(RunInChildProcess, PrintsNothing) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  run_in_child_process([] {
    std::puts("out");
    std::fflush(stdout);
    std::fputs("err", stderr);
    return 0;
  });
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace espalier
