// An archive: what one command leaves for another as an HDF5 file of named arrays and attributes,
// readable with h5py. A format is a list of names over what stands here. Attributes format and
// version say which it is. Two kinds:
//
//     sealed               bytes 0 .. 511 are a user block, text: "FORMAT 1", the length of the
//                          file, CRC-32 of all that follows. They stand before what they protect,
//                          so damage is found before HDF5 reads a byte of it. All ranks write it,
//                          each the rows that are its own; on how many changes no byte. Texts are
//                          of variable length
//     beside a graph       of any program, so the structure is looked at first; each array may have
//                          an attribute digest (file/content_digest.hpp). Texts are of fixed length
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "espalier/file/content_digest.hpp"
#include "espalier/file/hdf5_output.hpp"
#include "espalier/file/state_tensor.hpp"

namespace espalier {

struct ArchiveFormat {
  const char* name;         ///< "espalier-checkpoint"
  const char* noun;         ///< what one is called in messages
  const char* advice = "";  ///< how one is made, at the end of messages
  std::int64_t version = 1;
  const char* earlier = "";  ///< of earlier versions: why they are not read, and what to do
};

/// Writes attributes of a file or group, one after another.
class ArchiveWriter {
 public:
  /// Of a group.
  explicit ArchiveWriter(const hdf5::Handle& object) : object_(object) {}
  /// Of a file: says which format it is.
  ArchiveWriter(const hdf5::Handle& file, const ArchiveFormat& format, bool sealed = false)
      : object_(file), sealed_(sealed) {
    (*this)("format", format.name);
    (*this)("version", format.version);
  }

  /// A text, a number, a truth value; of an uint64 its 16 hex digits; nothing where it is empty.
  template <class T>
  void operator()(const std::string& name, const T& value) {
    if constexpr (requires { value.has_value(); }) {
      if (value) (*this)(name, *value);
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
      (*this)(name, hex(value));
    } else if constexpr (std::is_same_v<T, bool>) {
      note(hdf5::write_bool_attribute(object_, name.c_str(), value));
    } else if constexpr (std::is_integral_v<T>) {
      note(hdf5::write_integer_attribute(object_, name.c_str(), value));
    } else if constexpr (std::is_floating_point_v<T>) {
      note(hdf5::write_number_attribute(object_, name.c_str(), value));
    } else {
      note((sealed_ ? hdf5::write_long_text_attribute : hdf5::write_text_attribute)(object_, name.c_str(),
                                                                                    value));
    }
  }
  /// By one process: a new array.
  void numbers(const std::string& name, const std::vector<std::int64_t>& shape,
               const std::vector<double>& values);
  void note(bool good) { good_ = good && good_; }
  /// Has all gone well?
  bool good() const { return good_; }
  const hdf5::Handle& object() const { return object_; }

 private:
  const hdf5::Handle& object_;
  bool sealed_ = false, good_ = true;
};

/// Collective. Of a new array whose parts, mine too, are written: its digest, which it gets. Those
/// of parts add up.
std::uint64_t finish_array(hdf5::Output& output, const std::string& name, const hdf5::Dataset& dataset,
                           bool good, std::uint64_t my_digest, std::string_view label);

/// Collective. My rows of a new array, from row `begin` on. Returns its digest, which it gets.
template <class T>
std::uint64_t write_array(hdf5::Output& output, const std::string& name,
                          const std::vector<std::int64_t>& shape, std::int64_t begin,
                          std::span<const T> values, std::string_view label,
                          decltype(hdf5::create_dataset) create = hdf5::reserve_dataset) {
  const auto dataset = create(output.file(), name, hdf5::file_type<T>(), shape);
  const auto width = std::max<std::int64_t>(1, dataset.columns());
  const hdf5::Slab slab{begin, begin + std::ssize(values) / width, width};
  const bool good =
      dataset.exists() && hdf5::write_slab(dataset, hdf5::memory_type<T>(), slab, values.data());
  return finish_array(output, name, dataset, good, content_digest(values, begin * width), label);
}

/// What a sealed archive has beside its tensors.
using WriteRest = std::function<void(ArchiveWriter&)>;

/// Collective. Writes a sealed archive anew, which all ranks see, and brings it to the disk. `rest`
/// is called on rank 0; tensors are read and written block by block. Throws UserError on every
/// rank: kUsage, with the reason alone, where the file cannot be written, kInternal where HDF5
/// cannot make it. Then there may be a part of it.
void write_sealed(const Communicator& world, const ArchiveFormat& format, const std::string& path,
                  const std::vector<StateTensor>& tensors, const WriteRest& rest);
/// By one process, which has all rows: the bytes of such a file.
std::string sealed_bytes(const ArchiveFormat& format, const std::vector<StateTensor>& tensors,
                         const WriteRest& rest);

/// Collective: each rank reads a part. Throws UserError(kInput) on every rank, naming `path` and
/// the damage, for a file that is not, or no longer, what its user block says.
void check_seal(const Communicator& world, const ArchiveFormat& format, const std::string& path);
/// Does it begin as a sealed archive of this format, whole or damaged? Throws UserError(kInput)
/// where it cannot be read.
bool is_sealed_as(const ArchiveFormat& format, const std::string& path);

/// Reads an archive, by this process. Members throw UserError(kInput) that names the file and says
/// what is wrong.
class ArchiveReader {
 public:
  /// A file that was looked at before, by its seal or by look_at().
  ArchiveReader(const ArchiveFormat& format, const std::string& path);
  /// One whose bytes are here: checks the seal. `path` is for messages.
  ArchiveReader(const ArchiveFormat& format, const std::string& path, const std::string& bytes);
  /// One of any program: by one rank, alone, while the others wait for its error.
  static ArchiveReader look_at(const ArchiveFormat& format, const std::string& path);

  [[noreturn]] void fail(const std::string& what) const;
  const hdf5::Handle& file() const { return opened_->file; }
  bool has(const std::string& attribute) const { return H5Aexists(file().id(), attribute.c_str()) > 0; }

  /// An attribute, as ArchiveWriter writes it; an optional one may be missing.
  template <class T>
  void operator()(const std::string& name, T& value) const {
    if constexpr (requires { value.has_value(); }) {
      if (has(name)) (*this)(name, value.emplace());
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
      const auto digest = digest_from_hex(text(name));
      if (!digest) refuse(name, "16 hex digits");
      value = *digest;
    } else if constexpr (std::is_integral_v<T>) {
      std::int64_t wide = 0;
      if (!hdf5::read_integer_attribute(file(), name.c_str(), wide)) refuse(name, "a whole number");
      value = static_cast<T>(wide);
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!hdf5::read_number_attribute(file(), name.c_str(), value)) refuse(name, "a floating-point number");
    } else {
      if (!hdf5::read_text_attribute(file(), name.c_str(), value)) refuse(name, "a text that can be read");
    }
  }
  std::string text(const std::string& name) const {
    std::string value;
    (*this)(name, value);
    return value;
  }
  /// parse(text), which throws where it does not understand it.
  void understand(const std::string& name, const std::function<void(const std::string&)>& parse) const;

  bool has_array(const std::string& name) const { return hdf5::open_dataset(file(), name).exists(); }
  /// An array of this shape, -1: of any extent, as it is to be read by `memory` type; floating
  /// point of any width.
  hdf5::Dataset open_array(const std::string& name, const std::vector<std::int64_t>& shape,
                           hid_t memory) const;
  /// All of it, checked against its digest if it has one.
  template <class T>
  std::vector<T> array(const std::string& name, const std::vector<std::int64_t>& shape) const {
    const auto dataset = open_array(name, shape, hdf5::memory_type<T>());
    std::vector<T> values(static_cast<std::size_t>(dataset.rows() * dataset.columns()));
    read(dataset, hdf5::memory_type<T>(), {0, dataset.rows()}, values.data());
    check_digest(dataset, content_digest(std::span<const T>(values), 0));
    return values;
  }
  void read(const hdf5::Dataset& dataset, hid_t memory, RowRange rows, void* values) const;
  void check_digest(const hdf5::Dataset& dataset, std::uint64_t digest) const;
  /// A matrix of float32, or of words, whose rows are read when they are asked for: keeps the
  /// file open.
  StateTensor tensor(const std::string& name) const;

 private:
  struct Opened {
    hdf5::WrittenBytes image;  // of one in memory
    hdf5::Handle file;
    std::int64_t size = 0;
  };
  void check_head() const;
  [[noreturn]] void refuse(const std::string& name, const char* wanted) const;

  ArchiveFormat format_;
  std::string path_;
  std::shared_ptr<Opened> opened_ = std::make_shared<Opened>();
};

}  // namespace espalier
