#include "espalier/train/checkpoint_folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "espalier/base/error.hpp"
#include "espalier/base/temporary_file.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLatest = "latest";
constexpr const char* kPartial = ".partial";

std::string name_of(const Cursor& cursor) {
  return fmt::format("epoch-{:04}-step-{:06}.h5", cursor.epoch, cursor.step);
}

bool is_checkpoint(const std::string& name, Cursor* found = nullptr) {
  Cursor cursor;
  if (std::sscanf(name.c_str(), "epoch-%ld-step-%ld", &cursor.epoch, &cursor.step) != 2) return false;
  if (found != nullptr) *found = cursor;
  return name == name_of(cursor);
}

// On the disk, not only in the system's memory: a node may die the moment after.
bool write_through(const std::string& path, const std::string& bytes) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return false;
  std::size_t written = 0;
  while (written < bytes.size()) {
    const auto part = write(file, bytes.data() + written, bytes.size() - written);
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) break;
    written += static_cast<std::size_t>(part);
  }
  const bool good = written == bytes.size() && fsync(file) == 0;
  const int why = errno;
  const bool closed = close(file) == 0;
  if (!good) errno = why;
  return good && closed;
}

// The names in a folder are data of the folder. Some file systems cannot sync one: they need not.
void sync_folder(const std::string& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  fsync(folder);
  close(folder);
}

}  // namespace

std::string CheckpointFolder::save(const Cursor& cursor, const std::string& bytes,
                                   const std::string& previous, const std::string& kept) {
  const auto name = name_of(cursor);
  const auto partial = file(name + kPartial), link = file(std::string(kLatest) + kPartial);
  const TemporaryFile watched(partial), watched_link(link);
  std::error_code error;
  fs::create_directories(path_, error);
  errno = 0;
  bool good = write_through(partial, bytes) && std::rename(partial.c_str(), file(name).c_str()) == 0;
  if (good) {
    sync_folder(path_);
    fs::remove(link, error);
    fs::create_symlink(name, link, error);
    good = !error && std::rename(link.c_str(), file(kLatest).c_str()) == 0;
  }
  if (!good) {
    const std::string why = errno != 0 ? std::strerror(errno) : error.message();
    fs::remove(partial, error);
    usage_error("cannot save the checkpoint {}: {}; check output.dir and the free space there", file(name),
                why);
  }
  sync_folder(path_);
  remove_all_but({name, previous, kept});
  return name;
}

void CheckpointFolder::remove_all_but(std::initializer_list<std::string> kept) const {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path_, error)) {
    const auto name = entry.path().filename().string();
    const bool partial =
        name.ends_with(kPartial) && is_checkpoint(name.substr(0, name.size() - std::strlen(kPartial)));
    if (partial || (is_checkpoint(name) && std::ranges::find(kept, name) == kept.end()))
      fs::remove(entry.path(), error);
  }
}

void CheckpointFolder::clear() const {
  std::error_code error;
  fs::remove(file(kLatest), error);
  remove_all_but({});
}

std::vector<std::string> CheckpointFolder::list() const {
  std::vector<std::pair<Cursor, std::string>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path_, error)) {
    Cursor cursor;
    const auto name = entry.path().filename().string();
    if (is_checkpoint(name, &cursor)) found.emplace_back(cursor, name);
  }
  const auto latest = fs::read_symlink(file(kLatest), error).string();
  const auto order = [&](const auto& one) {
    return std::tuple(one.second == latest, one.first.epoch, one.first.step);
  };
  std::ranges::sort(found, [&](const auto& a, const auto& b) { return order(a) > order(b); });
  std::vector<std::string> names;
  for (auto& [cursor, name] : found) names.push_back(std::move(name));
  return names;
}

std::string CheckpointFolder::read(const std::string& name) const {
  return read_file(file(name));
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream content;
  const bool empty = in.peek() == EOF && in.is_open() && !in.bad();
  if (!empty && !(content << in.rdbuf())) input_error("{}: cannot be read: {}", path, std::strerror(errno));
  return content.str();
}

}  // namespace espalier
