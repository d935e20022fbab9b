#include "espalier/file/input_files.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "espalier/base/error.hpp"
#include "espalier/base/output_file.hpp"

namespace espalier {

namespace fs = std::filesystem;

namespace {

constexpr int kDeepest = 4;  // folders below the one that is imported; links may lead in circles

bool is_hdf5(const fs::path& path) {
  std::array<char, 4> start{};
  std::ifstream(path, std::ios::binary).read(start.data(), start.size());
  return std::string_view(start.data(), start.size()) == "\x89HDF";
}

// Is `inner` equal to `outer` or below it? Both without links.
bool is_within(const fs::path& inner, const fs::path& outer) {
  const auto relative = inner.lexically_relative(outer);
  return !relative.empty() && *relative.begin() != "..";
}

// The file at most `depth` folders below `folder` that is the same one as `output`; empty: none.
fs::path same_file_below(const fs::path& folder, const fs::path& output, int depth) {
  std::error_code error;
  for (const auto& entry :
       fs::directory_iterator(folder, fs::directory_options::skip_permission_denied, error)) {
    if (fs::equivalent(entry.path(), output, error)) return entry.path();
    if (depth == 0 || !fs::is_directory(entry.path(), error)) continue;
    const auto found = same_file_below(entry.path(), output, depth - 1);
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace

void refuse_input_as_output(const std::string& folder, const std::string& output,
                            const std::vector<std::string>& parts) {
  check_is_file(output);
  std::error_code error;
  const auto place = fs::weakly_canonical(fs::absolute(output).parent_path(), error);
  if (fs::exists(output, error)) {
    const auto same = same_file_below(folder, output, kDeepest);
    // With a link among the folders of `same`, the path itself does not tell where it lies.
    const bool read = std::ranges::any_of(
        parts, [&](const std::string& part) { return is_within(same, fs::path(folder) / part); });
    if (!same.empty() && (read || !is_hdf5(output)))
      usage_error("-o {}: is an input of this import ({}); give another name, in another folder", output,
                  same.string());
  }
  for (const auto& part : parts)
    if (const auto inputs = fs::weakly_canonical(fs::path(folder) / part, error); is_within(place, inputs))
      usage_error("-o {}: the folder {} holds the input; give a name in another folder", output,
                  (fs::path(folder) / part).string());
}

void refuse_inputs_as_output(const std::vector<std::string>& files, const std::string& output) {
  std::error_code none;
  for (const auto& file : files)
    if (!file.empty() && fs::equivalent(file, output, none))
      usage_error("-o {}: is an input of this import; give another name", output);
}

void check_is_input(const std::string& path) {
  if (const auto other = other_than_file(path); !other.empty())
    input_error("{} is a {}, not a file; put a file there", path, other);
}

}  // namespace espalier
