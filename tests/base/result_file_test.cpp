// Laws: a file that is replaced is the old or the new one, whatever fails; one that grows has whole
// lines only, and all of them once the disk takes them.
#include "espalier/base/output_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/files_in.hpp"
#include "files.hpp"
#include "mpi_test.hpp"

namespace espalier {
namespace {

namespace fs = std::filesystem;

TEST(ReplaceFile, IsTheOldOneOrTheNewOne) {
  const auto folder = test_folder("replace"), path = folder + "/report.json";
  EXPECT_EQ(replace_file(path, "old"), "");
  {
    const FullDisk full(5);
    EXPECT_EQ(replace_file(path, "too long"), "File too large");
    EXPECT_EQ(read_file(path), "old");
    EXPECT_EQ(replace_file(path, "short"), "");
  }
  EXPECT_EQ(read_file(path), "short");
  EXPECT_EQ(files_in(folder), 1);
}

TEST(ReplaceFile, FollowsALinkAndWritesIntoADevice) {
  const auto folder = test_folder("replace_links");
  std::ofstream(folder + "/file") << "old";
  fs::create_symlink("file", folder + "/link");
  EXPECT_EQ(replace_file(folder + "/link", "new"), "");
  EXPECT_TRUE(fs::is_symlink(folder + "/link"));
  EXPECT_EQ(read_file(folder + "/file"), "new");
  for (const auto& [device, problem] :
       {std::pair("/dev/full", "No space left on device"), std::pair("/dev/null", "")}) {
    fs::remove(folder + "/link");
    // Not the device itself: an error here would replace it.
    fs::create_symlink(device, folder + "/link");
    EXPECT_EQ(replace_file(folder + "/link", "text"), problem);
    EXPECT_TRUE(fs::is_symlink(folder + "/link"));
    EXPECT_TRUE(fs::is_character_file(device));
  }
  EXPECT_EQ(replace_file(folder, "text"), "Is a directory");
  EXPECT_EQ(replace_file(folder + "/no/such/folder", "text"), "No such file or directory");
  EXPECT_EQ(files_in(folder), 2);
}

TEST(GrowingFile, HasWholeLinesAndInTheEndAll) {
  const auto path = test_folder("grow") + "/metrics.csv";
  constexpr std::size_t kDiskBytes = 105;  // within a line
  GrowingFile file(path);
  std::string all;
  for (int line = 0; line < 40; ++line) {
    const auto text = "line " + std::to_string(line * line) + "\n";
    file.add(text);
    all += text;
    {
      const FullDisk full(kDiskBytes);
      EXPECT_EQ(file.write(), all.size() <= kDiskBytes ? "" : "File too large") << line;
    }
    EXPECT_TRUE(all.starts_with(read_file(path)));
    EXPECT_TRUE(read_file(path).ends_with("\n"));
  }
  EXPECT_LT(read_file(path).size(), all.size());
  EXPECT_EQ(file.write(), "");
  EXPECT_EQ(read_file(path), all);
}

TEST(GrowingFile, IsWrittenAnewWhereItWasCutOrRemoved) {
  const auto path = test_folder("grow_again") + "/metrics.csv";
  GrowingFile file(path);
  file.add("one\n");
  EXPECT_EQ(file.write(), "");
  fs::remove(path);
  file.add("two\n");
  EXPECT_EQ(file.write(), "");
  EXPECT_EQ(read_file(path), "one\ntwo\n");
  fs::resize_file(path, 5);
  file.add("three\n");
  EXPECT_EQ(file.write(), "");
  EXPECT_EQ(read_file(path), "one\ntwo\nthree\n");
  std::ofstream(path, std::ios::app) << "torn";
  file.add("four\n");
  EXPECT_EQ(file.write(), "");
  EXPECT_EQ(read_file(path), "one\ntwo\nthree\nfour\n");
}

}  // namespace
}  // namespace espalier
