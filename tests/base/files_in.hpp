// How many files a test left in a folder.
#pragma once

#include <filesystem>
#include <iterator>
#include <string>

namespace espalier {

inline std::size_t files_in(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

}  // namespace espalier
