// Laws: a small text comes back byte for byte; anything else that a path can be is one sentence
// that says which it is, at once and whatever its size.
#include "espalier/base/text.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "espalier/base/error.hpp"
#include "mpi_test.hpp"
#include "user_error.hpp"

namespace espalier {
namespace {

std::string reading_message(const std::string& path) {
  return message_of(ExitCode::kUsage, [&] { read_input_text(path, "config file"); });
}

std::string written(const std::string& name, const std::string& bytes) {
  const auto path = test_folder("input-text") + "/" + name;
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST(InputText, ASmallTextComesBack) {
  for (const std::string text : {"", "\n", "a = 1\r\n\tb = \"\xc3\xa9\"", "\xef\xbb\xbfwith a mark"})
    EXPECT_EQ(read_input_text(written("a.toml", text), "config file"), text);
  EXPECT_EQ(read_input_text("/dev/null", "config file"), "");
}

TEST(InputText, WhatIsNoTextIsNamed) {
  const auto folder = test_folder("input-text");
  const auto expect = [](const std::string& path, const std::string& words) {
    EXPECT_EQ(reading_message(path), "config file " + path + ": " + words);
  };
  expect(folder + "/nothing.toml",
         "no such file (seen from " + std::filesystem::current_path().string() + ")");
  expect(folder, "is a folder; give the path of a file");
  expect(folder + "/" + std::string(300, 'x'), "cannot be opened: File name too long");
  EXPECT_EQ(reading_message(""), "the path of the config file is empty");
  const auto pipe = folder + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  expect(pipe, "is a pipe; give the path of a file, which can be read again");
  expect("/dev/zero", "is a device; give the path of a file");
  expect(written("image", std::string("abc\n\0def", 8)), "is not text: byte 4 is 0x00");
  constexpr const char* kHdf5 = "\x89HDF\r\n\x1a\n...";
  const auto remedy = [](const std::string& path) {
    return ", not text; write a text file with the lines `[graph]` and `file = \"" + path +
           "\"`, and give that";
  };
  const auto other = written("other.h5", kHdf5);
  expect(other, "is an HDF5 file, a graph perhaps" + remedy(other));
  // In a folder made anew.
  const auto graph = written("graph.h5", kHdf5 + std::string("espalier-graph"));
  expect(graph, "is a graph file" + remedy(graph));
  std::filesystem::resize_file(graph, 3 << 20);
  expect(graph, "is a graph file" + remedy(graph));
}

TEST(InputText, AHugeFileIsNotRead) {
  const auto path = written("huge", "x = 1\n");
  std::filesystem::resize_file(path, std::uintmax_t{3} << 30);  // a hole
  EXPECT_EQ(reading_message(path),
            "config file " + path + ": has 3221225472 bytes; at most 1048576 are read");
}

TEST(InputText, AFileThatMayNotBeReadIsNamed) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const auto path = written("secret", "x = 1\n");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  EXPECT_EQ(reading_message(path), "config file " + path + ": cannot be opened: Permission denied");
}

}  // namespace
}  // namespace espalier
