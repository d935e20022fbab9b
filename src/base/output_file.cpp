#include "espalier/base/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "espalier/base/error.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

// A link that leads nowhere has the name, too.
bool name_is_taken(const std::string& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

// 0, or the reason why `to` does not name the file now. EEXIST: something has this name.
int rename_unless_taken(const std::string& from, const std::string& to) {
#ifdef RENAME_NOREPLACE
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) return errno;
#endif
  // Network file systems know no such rename, but a second name that must be new.
  if (link(from.c_str(), to.c_str()) == 0) {
    unlink(from.c_str());
    return 0;
  }
  if (errno == EEXIST) return EEXIST;
  // Nor second names: there remains to look, and hope for a moment.
  if (name_is_taken(to)) return EEXIST;
  return std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

// The work is done, but its place is taken: it stays beside it, under a name that says so.
[[noreturn]] void keep_beside(const std::string& temporary, const std::string& path) {
  const auto kept = fmt::format("{}.done-{}", path, getpid());
  if (const int reason = rename_unless_taken(temporary, kept); reason != 0)
    usage_error("cannot rename {} to {}: {}", temporary, kept, std::strerror(reason));
  usage_error(
      "{} appeared while this command was at work and is not replaced; the finished file is {}: rename it, "
      "or give --overwrite next time",
      path, kept);
}

}  // namespace

std::string other_than_file(const std::string& path) {
  std::error_code error;
  switch (fs::status(path, error).type()) {
    case fs::file_type::block:
    case fs::file_type::character:
      return "device";
    case fs::file_type::fifo:
      return "pipe";
    case fs::file_type::socket:
      return "socket";
    case fs::file_type::directory:
      return "folder";
    default:
      return {};
  }
}

void check_is_file(const std::string& path) {
  const auto other = other_than_file(path);
  if (!other.empty() && other != "folder")
    usage_error("cannot write {}: it is a {}, not a file; give -o the name of a file", path, other);
}

void check_output(const OutputFile& output) {
  const auto& path = output.path;
  std::error_code error;
  if (path.empty() || other_than_file(path) == "folder")
    usage_error("cannot write '{}': is a folder, not a file name", path);
  check_is_file(path);
  const auto folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  if (!fs::is_directory(folder, error))
    usage_error("cannot write {}: there is no folder {}; create it first", path, folder.string());
  if (!output.overwrite && name_is_taken(path))
    usage_error("{} exists already; give another name, or --overwrite to replace it", path);
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    usage_error("cannot write {}: folder {}: {}", path, folder.string(), std::strerror(errno));
}

void put_in_place(const std::string& temporary, const OutputFile& output) {
  const auto& path = output.path;
  const int reason = !output.overwrite ? rename_unless_taken(temporary, path)
                     : std::rename(temporary.c_str(), path.c_str()) == 0 ? 0
                                                                         : errno;
  if (reason == EEXIST && !output.overwrite) keep_beside(temporary, path);
  if (reason != 0) usage_error("cannot rename {} to {}: {}", temporary, path, std::strerror(reason));
}

}  // namespace espalier
