// Laws: of checkpoints the newest and the one that the caller names are kept; what dead runs left
// half-written goes, what is not a checkpoint stays; `latest` names the newest, and is listed
// first; a name that is taken leaves what was there as it was. (The last two, full disks and files
// in its place: tests/app/restart_test.py and output_test.py.)
#include "espalier/train/checkpoint_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "espalier/base/error.hpp"
#include "espalier/base/ranged_file.hpp"
#include "espalier/comm/communicator.hpp"
#include "mpi_test.hpp"
#include "train/checkpoint_bytes.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

namespace fs = std::filesystem;

using Names = std::vector<std::string>;

Names files_in(const std::string& path) {
  Names names;
  for (const auto& entry : fs::directory_iterator(path)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

std::string read(const CheckpointFolder& folder, const std::string& name) {
  return read_file(folder.path() + "/" + name);
}

std::string save(CheckpointFolder& folder, const Cursor& cursor, const std::string& bytes,
                 const std::string& previous, const std::string& kept = "") {
  const auto write = [&](const std::string& path) {
    agree(test_world(), [&] {
      auto file = RangedFile::create(path);
      file.write(0, bytes.data(), std::ssize(bytes));
      file.sync();
    });
  };
  return folder.save(test_world(), cursor, write, previous, kept);
}

std::string latest_in(const CheckpointFolder& folder) {
  return fs::read_symlink(folder.path() + "/latest").string();
}

TEST(CheckpointFolder, KeepsTheOneThatTheCallerNamesAsBeforeIt) {
  CheckpointFolder folder(test_folder("checkpoint-folder"));
  const auto first = save(folder, {1, 0}, "1", ""), second = save(folder, {2, 0}, "2", first);
  const auto third = save(folder, {3, 0}, "3", first);  // the second was damaged
  EXPECT_EQ(folder.list(), (Names{third, first}));
  EXPECT_EQ(save(folder, {3, 0}, "3 again", first), third) << "at the same moment once more";
  EXPECT_EQ(folder.list(), (Names{third, first}));
  EXPECT_EQ(read(folder, third), "3 again");
  const auto alone = save(folder, {1, 5}, "a training of its own", "");
  EXPECT_EQ(folder.list(), Names{alone});
  EXPECT_EQ(latest_in(folder), alone);
}

TEST(CheckpointFolder, RemovesWhatDeadRunsLeftAndNothingElse) {
  CheckpointFolder folder(test_folder("checkpoint-folder"));
  write_file(folder.path() + "/epoch-0001-step-000009.h5.partial", "half");
  write_file(folder.path() + "/epoch-0002-step-000000.h5.partial", "half of what is written now");
  fs::create_symlink("epoch-0001-step-000009.h5", folder.path() + "/latest.partial");
  const Names foreign = {"epoch-0001-step-000002.h5.bak", "epoch-0001.h5",
                         "epoch-one-step-two.h5",         "mine.h5.partial",
                         "my epoch-0001-step-000002.h5",  "notes.txt"};
  for (const auto& name : foreign) write_file(folder.path() + "/" + name, name);
  fs::create_directory(folder.path() + "/a folder");
  const auto saved = save(folder, {2, 0}, "whole", "");
  EXPECT_EQ(folder.list(), Names{saved});
  EXPECT_EQ(read(folder, saved), "whole");
  auto expected = foreign;
  for (const auto& name : {std::string("latest"), std::string("a folder"), saved}) expected.push_back(name);
  std::ranges::sort(expected);
  EXPECT_EQ(files_in(folder.path()), expected);
  for (const auto& name : foreign) EXPECT_EQ(read(folder, name), name);
}

TEST(CheckpointFolder, ListsWhatLatestNamesFirstThenByEpochAndStep) {
  CheckpointFolder folder(test_folder("checkpoint-folder"));
  const Names newest_first = {"epoch-10000-step-000000.h5", "epoch-9999-step-1000000.h5",
                              "epoch-9999-step-999999.h5",  "epoch-0002-step-000010.h5",
                              "epoch-0002-step-000009.h5",  "epoch-0001-step-000500.h5"};
  for (const auto& name : newest_first) write_file(folder.path() + "/" + name, name);
  EXPECT_EQ(folder.list(), newest_first);
  fs::create_symlink("gone.h5", folder.path() + "/latest");
  EXPECT_EQ(folder.list(), newest_first) << "latest names nothing";
  for (std::size_t k = 0; k < newest_first.size(); ++k) {
    fs::remove(folder.path() + "/latest");
    fs::create_symlink(newest_first[k], folder.path() + "/latest");
    auto expected = newest_first;
    std::rotate(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(k),
                expected.begin() + static_cast<std::ptrdiff_t>(k) + 1);
    EXPECT_EQ(folder.list(), expected);
  }
}

// The checkpoints before are there, with `latest`, and nothing half-written.
void expect_as_before(const CheckpointFolder& folder, const std::string& newest, const std::string& previous,
                      const std::string& obstacle) {
  EXPECT_EQ(latest_in(folder), newest);
  EXPECT_EQ(read(folder, newest), "2");
  EXPECT_EQ(read(folder, previous), "1");
  Names expected = {newest, previous, "latest"};
  if (!obstacle.empty()) expected.push_back(obstacle);
  std::ranges::sort(expected);
  EXPECT_EQ(files_in(folder.path()), expected);
}

TEST(CheckpointFolder, ANameThatIsTakenLeavesTheCheckpointsBefore) {
  CheckpointFolder folder(test_folder("checkpoint-folder"));
  const auto first = save(folder, {1, 0}, "1", ""), second = save(folder, {2, 0}, "2", first);
  const std::string name = "epoch-0003-step-000000.h5";
  fs::create_directories(folder.path() + "/" + name + "/full");
  const auto said = message_of(ExitCode::kUsage, [&] { save(folder, {3, 0}, "3", second); });
  EXPECT_NE(said.find(name), std::string::npos) << said;
  expect_as_before(folder, second, first, name);
}

}  // namespace
}  // namespace espalier
