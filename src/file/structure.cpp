// The structure of a file that may be damaged, or be anyone's, read before we rely on it: HDF5 1.10
// believes the lengths and addresses that it reads.
#include <algorithm>

#include "espalier/base/crash_guard.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/process.hpp"
#include "espalier/file/hdf5.hpp"

namespace espalier::hdf5 {

namespace {

bool texts_are_sound(const Handle& object) {
  return std::ranges::all_of(attribute_names(object), [&](const std::string& name) {
    return text_attribute_is_sound(object, name.c_str());
  });
}

void check_guarded(const std::string& path, const std::string& message) {
  constexpr double kSeconds = 2;
  constexpr std::int64_t kBytes = std::int64_t{1} << 30;
  bool sound = true;
  run_crash_guarded(kSeconds, kBytes, message, [&] {
    const auto file = open_file_unlocked(path);
    if (!file.valid()) return;
    std::vector<Dataset> kept;  // opened as all ranks will, one beside the other
    sound = texts_are_sound(file) && texts_are_sound(open_group(file, "/links"));
    for (const auto& name : dataset_names(file)) {
      const auto& dataset = kept.emplace_back(open_dataset(file, "/" + name));
      if (!dataset.exists()) continue;
      sound = texts_are_sound(dataset.handle) && sound;
      H5Dget_storage_size(dataset.handle.id());  // walks over the chunks
    }
  });
  if (!sound) input_error("{}", message);  // one that HDF5 would fill the memory for, perhaps
}

}  // namespace

void check_structure(const std::string& path, const std::string& message) {
  if (!failure_context().throws) return check_guarded(path, message);
  const auto program = program_of_library();
  if (program.empty()) return;
  const auto end = run_program(program, {"look-at", path});
  if (end && (end->signal != 0 || end->code == static_cast<int>(ExitCode::kInput)))
    input_error("{}", message);
}

int look_at(const std::string& path) {
  try {
    check_guarded(path, path + ": damaged");
    return 0;
  } catch (const UserError& error) {
    return static_cast<int>(error.code());
  }
}

}  // namespace espalier::hdf5
