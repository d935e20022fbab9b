// First what the path is, then what the bytes are: opening a pipe would wait for its writer, and
// reading a folder or a graph file would end in a message of the parser.
#include "espalier/base/input_text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "espalier/base/error.hpp"
#include "espalier/base/escape.hpp"

namespace espalier {

namespace {

constexpr std::uintmax_t kMostBytes = std::uintmax_t{1} << 20;

// Before its size is judged: a graph file is large.
void check_is_no_graph(const std::string& path, const std::string& what, const std::string& name) {
  std::string begin(1 << 16, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(file.gcount()));
  if (!begin.starts_with("\x89HDF")) return;
  const bool graph = begin.find("espalier-graph") != std::string::npos;
  usage_error("{}: is {}, not text{}", name, graph ? "a graph file" : "an HDF5 file, a graph perhaps",
              what == "config file"
                  ? fmt::format("; write a text file with the lines `[graph]` and `file = {}`, and give that",
                                quoted(path))
                  : "");
}

void check_place(const std::string& path, const std::string& what, const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code error, ignored;
  const auto status = fs::status(path, error);
  switch (status.type()) {
    case fs::file_type::regular:
      break;
    case fs::file_type::not_found:
      usage_error("{}: no such file (seen from {})", name, fs::current_path(ignored).string());
    case fs::file_type::directory:
      usage_error("{}: is a folder; give the path of a file", name);
    case fs::file_type::fifo:
      usage_error("{}: is a pipe; give the path of a file, which can be read again", name);
    case fs::file_type::none:
      usage_error("{}: cannot be opened: {}", name, error.message());
    default:
      usage_error("{}: is a device; give the path of a file", name);
  }
  check_is_no_graph(path, what, name);
  const auto size = fs::file_size(path, error);
  if (error) usage_error("{}: cannot be opened: {}", name, error.message());
  if (size > kMostBytes) usage_error("{}: has {} bytes; at most {} are read", name, size, kMostBytes);
}

void check_is_text(const std::string& bytes, const std::string& name) {
  const auto is_text = [](char byte) {
    const auto code = static_cast<unsigned char>(byte);
    return code >= 0x20 || byte == '\n' || byte == '\r' || byte == '\t';
  };
  const auto bad = std::find_if_not(bytes.begin(), bytes.end(), is_text);
  if (bad != bytes.end())
    usage_error("{}: is not text: byte {} is 0x{:02x}", name, bad - bytes.begin(),
                static_cast<unsigned char>(*bad));
}

}  // namespace

std::string read_input_text(const std::string& path, const std::string& what) {
  if (path.empty()) usage_error("the path of the {} is empty", what);
  std::error_code error;
  if (std::filesystem::weakly_canonical(path, error) == "/dev/null") return {};
  const auto name = what + " " + path;
  check_place(path, what, name);
  std::ifstream file(path, std::ios::binary);
  if (!file) usage_error("{}: cannot be opened: {}", name, std::strerror(errno));
  std::string bytes(kMostBytes + 1, '\0');  // one more than allowed: the file may have grown
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (file.bad()) usage_error("{}: cannot be read: {}", name, std::strerror(errno));
  bytes.resize(file.gcount());
  if (bytes.size() > kMostBytes) usage_error("{}: has more than {} bytes", name, kMostBytes);
  check_is_text(bytes, name);
  return bytes;
}

}  // namespace espalier
