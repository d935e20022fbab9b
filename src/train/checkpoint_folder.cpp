#include "espalier/train/checkpoint_folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>

#include "espalier/base/error.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/comm/communicator.hpp"

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

// The names in a folder are data of the folder. Some file systems cannot sync one: they need not.
void sync_folder(const std::string& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  fsync(folder);
  close(folder);
}

}  // namespace

std::string CheckpointFolder::save(const Communicator& world, const Cursor& cursor,
                                   const std::function<void(const std::string&)>& write,
                                   const std::string& previous, const std::string& kept) {
  const auto name = name_of(cursor), partial = file(name + kPartial);
  std::optional<TemporaryFile> watched;
  if (world.rank() == 0) watched.emplace(partial);
  std::error_code error;
  try {
    agree(world, [&] {
      if (world.rank() == 0) fs::create_directories(path_, error);  // writing says what is wrong
    });
    write(partial);
    agree(world, [&] {
      if (world.rank() == 0) publish(name);
    });
  } catch (const UserError& refused) {
    if (world.rank() == 0) fs::remove(partial, error);
    if (refused.code() != ExitCode::kUsage) throw;
    usage_error("cannot save the checkpoint {}: {}; check output.dir and the free space there", file(name),
                refused.what());
  }
  if (world.rank() == 0) remove_all_but({name, previous, kept});
  return name;
}

// Gives the file its name, and `latest` to it.
void CheckpointFolder::publish(const std::string& name) const {
  const auto partial = file(name + kPartial), link = file(std::string(kLatest) + kPartial);
  const TemporaryFile watched(link);
  std::error_code error;
  fs::rename(partial, file(name), error);
  if (!error) {
    sync_folder(path_);
    fs::remove(link, error);
    fs::create_symlink(name, link, error);
    if (!error) fs::rename(link, file(kLatest), error);
  }
  if (error) throw UserError(ExitCode::kUsage, error.message());
  sync_folder(path_);
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

}  // namespace espalier
