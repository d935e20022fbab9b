#include "sidecar.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "espalier/base/error.hpp"
#include "espalier/file/structure.hpp"

namespace espalier {

SidecarReader::SidecarReader(std::string noun, std::string path, std::string advice)
    : noun_(std::move(noun)), path_(std::move(path)), advice_(std::move(advice)) {}

SidecarHead SidecarReader::open(const char* format,
                                const std::function<std::string(const SidecarHead&)>& look) {
  check_is_file();
  hdf5::check_structure(path_, message_of("its structure is damaged"));
  SidecarHead head;
  auto wrong = read_head(format, head);
  if (wrong.empty()) wrong = look(head);
  if (!wrong.empty()) fail(wrong);
  return head;
}

std::string SidecarReader::message_of(const std::string& what) const {
  return fmt::format("{} {}: {}; {}", noun_, path_, what, advice_);
}

void SidecarReader::fail(const std::string& what) const {
  throw UserError(ExitCode::kInput, message_of(what));
}

void SidecarReader::check_is_file() {
  std::error_code error;
  const auto status = std::filesystem::status(path_, error);
  if (!std::filesystem::exists(status))
    fail(fmt::format("no such file (seen from {})", std::filesystem::current_path(error).string()));
  if (const auto other = other_than_file(path_); !other.empty())
    fail(fmt::format("is a {}, not a file", other));
  if (!std::ifstream(path_, std::ios::binary))
    fail(fmt::format("cannot be opened: {}", std::strerror(errno)));
  size_ = static_cast<std::int64_t>(std::filesystem::file_size(path_, error));
}

std::string SidecarReader::read_head(const char* format, SidecarHead& head) {
  constexpr std::int64_t kVersion = 1;
  file_ = hdf5::open_file_unlocked(path_);
  if (!file_.valid()) return fmt::format("is not an HDF5 file, or is cut off ({})", hdf5::reason());
  for (const char* name : {"format", "method", "pattern", "types"})
    if (!hdf5::text_attribute_is_sound(file_, name)) return fmt::format("its attribute {} is damaged", name);
  std::string found, pattern;
  std::int64_t version = 0;
  if (!hdf5::read_text_attribute(file_, "format", found) || found != format)
    return fmt::format("is HDF5 but not {} {} (its attribute format is {}, not \"{}\")",
                       noun_.ends_with('s') ? "a file of" : "an", noun_,
                       found.empty() ? hdf5::describe_attribute(file_, "format") : '"' + found + '"', format);
  if (!hdf5::read_integer_attribute(file_, "version", version))
    return fmt::format("its attribute version is {}, not a whole number",
                       hdf5::describe_attribute(file_, "version"));
  if (version != kVersion)
    return fmt::format("has format version {}; this program reads version {}", version, kVersion);
  if (!hdf5::read_text_attribute(file_, "method", head.method)) return "has no attribute method";
  if (!hdf5::read_text_attribute(file_, "pattern", pattern)) return "";
  head.pattern = digest_from_hex(pattern);
  return head.pattern ? "" : fmt::format("its attribute pattern is \"{}\", not 16 hex digits", pattern);
}

std::string SidecarReader::check_integers(const hdf5::Dataset& dataset) const {
  if (!dataset.exists()) return fmt::format("there is no dataset {}", dataset.name);
  if (!dataset.is_integer()) return fmt::format("{} does not hold integers", dataset.name);
  if (!hdf5::text_attribute_is_sound(dataset.handle, "digest"))
    return fmt::format("the attribute digest of {} is damaged", dataset.name);
  return "";
}

void SidecarReader::check_digest(const hdf5::Dataset& dataset, std::uint64_t digest) const {
  std::string stated;
  if (!hdf5::read_text_attribute(dataset.handle, "digest", stated)) return;
  if (const auto found = hex(digest); stated != found)
    fail(fmt::format("{} is not what was written: its digest is {}, the file says {}", dataset.name, found,
                     stated));
}

}  // namespace espalier
