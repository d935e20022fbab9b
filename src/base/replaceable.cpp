#include "espalier/base/replaceable.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "espalier/base/error.hpp"
#include "espalier/base/output_file.hpp"

namespace espalier {

void check_replaceable(const std::string& path, const char* kind,
                       const std::function<bool(const std::string& text)>& is_one) {
  constexpr std::uintmax_t kLargest = std::uintmax_t{1} << 26;  // bytes; plans have a few kilobytes
  check_is_file(path);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return;  // nothing there, or writing will say what it is
  const auto size = std::filesystem::file_size(path, error);
  std::stringstream text;
  if (size == 0 || (size <= kLargest && text << std::ifstream(path).rdbuf() && is_one(text.str()))) return;
  usage_error("{} exists and is not a {}; give another name with -o, or remove it first", path, kind);
}

}  // namespace espalier
