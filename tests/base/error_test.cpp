// Laws: a failed check says rank, host, file, line and expression and ends the process with code 1;
// a user error carries its code.
#include "espalier/base/error.hpp"

#include <gtest/gtest.h>

namespace espalier {
namespace {

void fail_without_mpi() {
  failure_context().rank = 7;
  failure_context().host = "node3";
  failure_context().abort_job = nullptr;  // the child of a death test must not end the test's job
  const int answer = 41;
  ESPALIER_CHECK(answer == 42, "got {}", answer);
}

TEST(FailedCheck, SaysWhoWhereAndWhatAndExitsWithOne) {
  testing::GTEST_FLAG(death_test_style) = "fast";
  EXPECT_EXIT(fail_without_mpi(), testing::ExitedWithCode(1),
              "rank 7 on node3: .*error_test.cpp:[0-9]+: check failed: answer == 42: got 41");
}

TEST(UserError, CarriesTheExitCodeOfTheDesign) {
  const auto code_of = [](auto raise) {
    try {
      raise();
    } catch (const UserError& error) {
      return static_cast<int>(error.code());
    }
    return -1;
  };
  EXPECT_EQ(code_of([] { usage_error("x"); }), 2);
  EXPECT_EQ(code_of([] { input_error("x"); }), 3);
  EXPECT_EQ(code_of([] { memory_error("x"); }), 4);
}

}  // namespace
}  // namespace espalier
