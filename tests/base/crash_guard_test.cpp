// Laws: work that comes to its end changes nothing; work that faults, loops or takes all memory
// ends the process with exit code 3 and the message; after an error that was told a fault keeps its
// exit code.
#include "espalier/base/crash_guard.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>

namespace espalier {
namespace {

constexpr double kSeconds = 0.2;
constexpr std::int64_t kBytes = std::int64_t{1} << 28;

void guard(const std::function<void()>& work) {
  run_crash_guarded(kSeconds, kBytes, "the file is damaged", work);
}

TEST(CrashGuard, WorkThatEndsIsLeftAlone) {
  int done = 0;
  guard([&] { ++done; });
  guard([&] { ++done; });
  EXPECT_EQ(done, 2);
  void* const memory = std::malloc(std::size_t{1} << 30);  // the limit is gone with the work
  EXPECT_NE(memory, nullptr);
  std::free(memory);
  struct sigaction action = {};
  sigaction(SIGVTALRM, nullptr, &action);
  EXPECT_EQ(action.sa_handler, SIG_DFL);
}

TEST(CrashGuard, ErrorsPassThrough) {
  EXPECT_THROW(guard([] { throw std::runtime_error("of the work"); }), std::runtime_error);
}

using CrashGuardDeath = testing::Test;

TEST(CrashGuardDeath, AFaultIsAMessage) {
  EXPECT_EXIT(guard([] { std::raise(SIGSEGV); }), testing::ExitedWithCode(3), "error: the file is damaged");
  EXPECT_EXIT(guard([] { std::abort(); }), testing::ExitedWithCode(3), "the file is damaged");
}

TEST(CrashGuardDeath, ALoopIsAMessage) {
  EXPECT_EXIT(guard([] {
                for (std::atomic<int> k = 0;; ++k) continue;
              }),
              testing::ExitedWithCode(3), "the file is damaged");
}

// qemu-user says yes to a limit, and sets none: it would be its own. AddressSanitizer has reserved
// more than any.
bool memory_can_be_limited() {
#ifdef __SANITIZE_ADDRESS__
  return false;
#endif
  rlimit before = {}, seen = {};
  getrlimit(RLIMIT_AS, &before);
  const rlimit lower = {std::min(before.rlim_max, rlim_t{1} << 46), before.rlim_max};
  setrlimit(RLIMIT_AS, &lower);
  getrlimit(RLIMIT_AS, &seen);
  setrlimit(RLIMIT_AS, &before);
  return seen.rlim_cur == lower.rlim_cur;
}

TEST(CrashGuardDeath, MemoryEndsBeforeTheMachinesDoes) {
  if (!memory_can_be_limited()) GTEST_SKIP() << "a limit of memory is not kept here";
  EXPECT_EXIT(guard([] {
                if (std::malloc(std::size_t{1} << 30) == nullptr) std::exit(7);
              }),
              testing::ExitedWithCode(7), "");
}

TEST(CrashGuardDeath, AfterAnErrorAFaultKeepsTheCode) {
  EXPECT_EXIT(
      {
        keep_exit_code(3);
        std::raise(SIGSEGV);
      },
      testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace espalier
