#include "espalier/file/structure.hpp"

#include <vector>

#include "espalier/base/error.hpp"
#include "espalier/base/final_message.hpp"
#include "espalier/base/process.hpp"
#include "espalier/file/hdf5.hpp"

namespace espalier::hdf5 {

namespace {

// Of graph files, vertex partitions and edge parts.
constexpr const char* kTexts[] = {"format", "version", "name",    "source", "directed",
                                  "digest", "method",  "pattern", "types"};
constexpr const char* kTextsOfDatasets[] = {"digest", "classes", "unit"};

void check_guarded(const std::string& path, const std::string& message) {
  constexpr double kSeconds = 2;
  constexpr std::int64_t kBytes = std::int64_t{1} << 30;
  bool sound = true;
  run_crash_guarded(kSeconds, kBytes, message, [&] {
    const auto file = open_file_unlocked(path);
    if (!file.valid()) return;
    for (const char* name : kTexts) sound = text_attribute_is_sound(file, name) && sound;
    std::vector<Dataset> kept;  // opened as all ranks will, one beside the other
    const auto links = open_group(file, "/links");
    for (const char* name : {"version", "directed"})
      sound = (!links.valid() || text_attribute_is_sound(links, name)) && sound;
    for (const auto& name : dataset_names(file)) {
      const auto& dataset = kept.emplace_back(open_dataset(file, "/" + name));
      if (!dataset.exists()) continue;
      for (const char* text : kTextsOfDatasets)
        sound = text_attribute_is_sound(dataset.handle, text) && sound;
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
