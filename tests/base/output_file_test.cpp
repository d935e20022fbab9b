// Laws: a finished file that finds its place taken stays beside it; what a killed process has left
// is removed. (What may be replaced, and what is no file: tests/app/output_files_test.py.)
#include "espalier/base/output_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "espalier/base/error.hpp"
#include "files.hpp"
#include "mpi_test.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
 protected:
  std::string folder_ = test_folder("output-file"), place_ = folder_ + "/graph.h5",
              finished_ = folder_ + "/new";
};

// What a process that was killed has left goes; what somebody writes stays, and what only
// looks alike.
TEST_F(OutputFileTest, WhatNobodyWritesAnyMoreIsRemoved) {
  const auto gone = fork();
  if (gone == 0) _exit(0);
  waitpid(gone, nullptr, 0);
  const auto left = fmt::format("{}.partial-{}", place_, gone);
  const auto others = {fmt::format("{}.partial-{}", place_, getppid()), place_ + ".partial-",
                       place_ + ".partial-x", left + "0.data", fmt::format("{}2.partial-{}", place_, gone)};
  for (const auto& path : others) write_file(path, "");
  write_file(left, "half");
  {
    const int lock = open(left.c_str(), O_RDONLY);
    EXPECT_EQ(flock(lock, LOCK_SH), 0);
    const PartialFile looked(place_);
    EXPECT_TRUE(fs::exists(left)) << "another host's, or another container's";
    close(lock);
  }
  PartialFile mine(place_);
  EXPECT_FALSE(fs::exists(left));
  for (const auto& path : others) EXPECT_TRUE(fs::exists(path)) << path;
  write_file(mine.name(), "under way");
  mine.hold();
  const int file = open(mine.name().c_str(), O_RDONLY);
  EXPECT_NE(flock(file, LOCK_EX | LOCK_NB), 0);
  close(file);
}

TEST_F(OutputFileTest, AFinishedFileWhosePlaceIsTakenStaysBesideIt) {
  write_file(place_, "old");
  write_file(finished_, "new");
  expect_refused(ExitCode::kUsage, {"--overwrite"}, [&] { check_output(place_); });
  const auto words = message_of(ExitCode::kUsage, [&] { put_in_place(finished_, place_); });
  EXPECT_EQ(read_file(place_), "old");
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (entry.path() == place_) continue;
    EXPECT_EQ(read_file(entry.path()), "new");
    EXPECT_NE(words.find(entry.path().string()), std::string::npos) << words;
  }
}

TEST_F(OutputFileTest, ALinkThatLeadsNowhereIsTaken) {
  fs::create_symlink(folder_ + "/later", place_);
  write_file(finished_, "new");
  expect_refused(ExitCode::kUsage, {"exists already"}, [&] { check_output(place_); });
  expect_refused(ExitCode::kUsage, {"appeared"}, [&] { put_in_place(finished_, place_); });
  EXPECT_TRUE(fs::is_symlink(place_));
}

}  // namespace
}  // namespace espalier
