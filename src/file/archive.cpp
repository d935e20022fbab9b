// Reading, and arrays beside a graph; sealed_archive.cpp writes and seals.
#include "espalier/file/archive.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "espalier/base/error.hpp"

namespace espalier {

namespace {

std::string message_of(const ArchiveFormat& format, const std::string& path, const std::string& what) {
  if (*format.advice == '\0') return fmt::format("{}: {}", path, what);
  return fmt::format("{} {}: {}; {}", format.noun, path, what, format.advice);
}

// Why nothing can be read there; else empty.
std::string why_no_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::status(path, error)))
    return fmt::format("no such file (seen from {})", std::filesystem::current_path(error).string());
  if (const auto other = other_than_file(path); !other.empty())
    return fmt::format("is a {}, not a file", other);
  return std::ifstream(path, std::ios::binary) ? ""
                                               : fmt::format("cannot be opened: {}", std::strerror(errno));
}

// "int64 [any, 5]"
std::string in_words(hid_t memory, const std::vector<std::int64_t>& shape) {
  std::string words;
  for (const auto extent : shape)
    words += (words.empty() ? "" : ", ") + (extent < 0 ? "any" : std::to_string(extent));
  const bool is_float = H5Tget_class(memory) == H5T_FLOAT;
  return fmt::format("{}{} [{}]",
                     is_float                              ? "float"
                     : H5Tget_sign(memory) == H5T_SGN_NONE ? "uint"
                                                           : "int",
                     8 * H5Tget_size(memory), words);
}

}  // namespace

ArchiveReader::ArchiveReader(const ArchiveFormat& format, const std::string& path)
    : format_(format), path_(path) {
  hdf5::silence();
  std::error_code error;
  opened_->size = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  opened_->file = hdf5::open_file_unlocked(path);
  check_head();
}

ArchiveReader ArchiveReader::look_at(const ArchiveFormat& format, const std::string& path) {
  hdf5::silence();
  if (const auto why = why_no_file(path); !why.empty()) input_error("{}", message_of(format, path, why));
  hdf5::check_structure(path, message_of(format, path, "its structure is damaged"));
  return {format, path};
}

void ArchiveReader::check_head() const {
  if (!file().valid()) fail(fmt::format("is no HDF5 file, or is cut off ({})", hdf5::reason()));
  std::string found;
  if (!hdf5::read_text_attribute(file(), "format", found) || found != format_.name)
    fail(fmt::format("is HDF5 but no {} (its attribute format is {}, not \"{}\")", format_.noun,
                     found.empty() ? hdf5::describe_attribute(file(), "format") : '"' + found + '"',
                     format_.name));
  std::int64_t version = 0;
  (*this)("version", version);
  if (version != format_.version)
    fail(fmt::format("is of version {}; this program reads version {}{}", version, format_.version,
                     version < format_.version ? format_.earlier : ""));
}

void ArchiveReader::fail(const std::string& what) const {
  throw UserError(ExitCode::kInput, message_of(format_, path_, what));
}

// ---- attributes ----

void ArchiveReader::refuse(const std::string& name, const char* wanted) const {
  if (!has(name)) fail(fmt::format("its attribute {} is missing", name));
  fail(fmt::format("its attribute {} is {}, not {}", name, hdf5::describe_attribute(file(), name.c_str()),
                   wanted));
}

void ArchiveReader::understand(const std::string& name,
                               const std::function<void(const std::string&)>& parse) const {
  const auto value = text(name);
  try {
    parse(value);
  } catch (const std::exception& error) {
    fail(fmt::format("its attribute {} cannot be understood: {}", name, error.what()));
  }
}

// ---- arrays ----

hdf5::Dataset ArchiveReader::open_array(const std::string& name, const std::vector<std::int64_t>& shape,
                                        hid_t memory) const {
  auto found = hdf5::open_dataset(file(), name);
  if (!found.exists()) fail(fmt::format("there is no dataset {}", name));
  const bool fits = H5Tget_class(memory) == H5T_FLOAT
                        ? found.is_float()
                        : found.is_integer() && found.type_size == H5Tget_size(memory) &&
                              (!found.type_signed || H5Tget_sign(memory) == H5T_SGN_2);
  const auto extent_fits = [](std::int64_t here, std::int64_t wanted) {
    return wanted < 0 || here == wanted;
  };
  if (!fits || !std::ranges::equal(found.shape, shape, extent_fits))
    fail(fmt::format("{} is not {}", name, in_words(memory, shape)));
  auto bytes = static_cast<double>(found.type_size);
  for (const auto extent : found.shape) bytes *= static_cast<double>(extent);
  if (bytes > static_cast<double>(opened_->size))
    fail(fmt::format("is cut off, or compressed: it has {} bytes, and {} alone {:.0f}", opened_->size, name,
                     bytes));
  return found;
}

void ArchiveReader::read(const hdf5::Dataset& dataset, hid_t memory, RowRange rows, void* values) const {
  if (rows.size() > 0 && !hdf5::read_slab(dataset, memory, {rows.begin, rows.end, dataset.columns()}, values))
    fail(fmt::format("{} cannot be read: {}", dataset.name, hdf5::reason()));
}

void ArchiveReader::check_digest(const hdf5::Dataset& dataset, std::uint64_t digest) const {
  if (H5Aexists(dataset.handle.id(), "digest") <= 0) return;
  std::string stated;
  const auto found = hex(digest);
  if (!hdf5::read_text_attribute(dataset.handle, "digest", stated) || stated != found)
    fail(fmt::format("{} is not what was written: its digest is {}, the file says {}", dataset.name, found,
                     stated));
}

StateTensor ArchiveReader::tensor(const std::string& name) const {
  auto dataset = std::make_shared<const hdf5::Dataset>(hdf5::open_dataset(file(), "/" + name));
  const bool words = dataset->is_integer() && dataset->type_size == 4 && !dataset->type_signed;
  if (dataset->shape.size() != 2 || !(dataset->is_float() || words)) fail(name + " is no matrix of numbers");
  const auto type = words ? H5T_NATIVE_UINT32 : hdf5::memory_type<float>();
  const auto read_rows = [reader = *this, dataset, type](RowRange rows, float* to) {
    reader.read(*dataset, type, rows, to);
  };
  return {name, dataset->rows(), dataset->columns(), {{0, dataset->rows()}}, read_rows, words};
}

// ---- beside a graph ----

std::uint64_t finish_array(hdf5::Output& output, const std::string& name, const hdf5::Dataset& dataset,
                           bool good, std::uint64_t my_digest, std::string_view label) {
  output.require(good, name);
  const auto digest = output.comm().all_reduce(my_digest, Reduction::kSum, label);
  output.require(hdf5::write_text_attribute(dataset.handle, "digest", hex(digest)), name);
  return digest;
}

}  // namespace espalier
