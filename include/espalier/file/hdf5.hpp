// HDF5 as graph files and checkpoints use it: handles that close themselves, reasons as one line,
// row ranges of a dataset.
//
// Functions return success instead of throwing: a rank must not leave while the others are inside a
// collective call, so callers collect the status and raise it through agree()
// (comm/communicator.hpp).
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "espalier/base/half.hpp"
#include "espalier/comm/communicator.hpp"

namespace espalier::hdf5 {

/// Owns one HDF5 identifier.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle() = default;
  Handle(hid_t id, Close closer) : id_(id), close_(closer) {}
  Handle(Handle&& other) noexcept : id_(other.id_), close_(other.close_) { other.id_ = -1; }
  Handle& operator=(Handle&& other) noexcept;
  ~Handle() { close(); }

  bool valid() const { return id_ >= 0; }
  hid_t id() const { return id_; }
  /// Closes now (collective for files); false when that failed.
  bool close();

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

/// Stops HDF5 from printing its error stack; our messages replace it.
void silence();

/// What the last call of this header that failed on this rank says was wrong, at the bottom, for
/// a message.
const std::string& reason();

/// IEEE binary16; HDF5 has no name for it before 1.14.
hid_t half_type();

/// The type of a number in the files that we write, little endian whatever the machine, and
/// in memory.
struct NumberType {
  hid_t file, memory;
};
template <class T>
NumberType type_of() {
  if constexpr (std::is_same_v<T, Half>)
    return {half_type(), half_type()};
  else if constexpr (std::is_same_v<T, float>)
    return {H5T_IEEE_F32LE, H5T_NATIVE_FLOAT};
  else if constexpr (std::is_same_v<T, double>)
    return {H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE};
  else if constexpr (std::is_same_v<T, std::uint8_t>)
    return {H5T_STD_U8LE, H5T_NATIVE_UINT8};
  else if constexpr (std::is_same_v<T, std::uint16_t>)
    return {H5T_STD_U16LE, H5T_NATIVE_UINT16};
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return {H5T_STD_I32LE, H5T_NATIVE_INT32};
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return {H5T_STD_I64LE, H5T_NATIVE_INT64};
}
template <class T>
hid_t file_type() {
  return type_of<T>().file;
}
template <class T>
hid_t memory_type() {
  return type_of<T>().memory;
}

/// Collective. A handle that is not valid when the file cannot be opened.
Handle open_file(const Communicator& comm, const std::string& path);
/// Collective. Creates or empties the file.
Handle create_file(const Communicator& comm, const std::string& path);

/// Not collective: opens a file for this process alone, without MPI.
Handle open_file_alone(const std::string& path, bool writable);

/// Collective. Brings everything to the disk; false when that failed here.
bool flush(const Handle& file);

/// Removes a group or dataset, or all of them (collective for files of several ranks); space at the
/// end of the file becomes free.
void remove(const Handle& file, const char* name);
void remove_all(const Handle& file);

/// A dataset as it lies in the file.
struct Dataset {
  Handle handle;
  std::string name;
  std::vector<std::int64_t> shape;
  H5T_class_t type_class = H5T_NO_CLASS;
  std::size_t type_size = 0;
  bool type_signed = true;

  bool exists() const { return handle.valid(); }
  std::int64_t rows() const { return shape.empty() ? 0 : shape[0]; }
  std::int64_t columns() const { return shape.size() < 2 ? 1 : shape[1]; }
  bool is_integer() const { return type_class == H5T_INTEGER; }
  bool is_float() const { return type_class == H5T_FLOAT; }
  /// Of any kind that HDF5 converts to floating point; h5py writes truth values as an enum.
  bool is_number() const { return is_integer() || is_float() || type_class == H5T_ENUM; }
  bool is_half() const;
};

/// Where a dataset of float32 or float16 begins in the file, in bytes, if it lies there as it does
/// in memory; -1: compressed, in pieces, of another type or byte order, or not written yet.
std::int64_t plain_offset(const Dataset& dataset);

/// Collective. The group `name` ("/links"), for its attributes; not valid where there is none. The
/// second makes it, below the root.
Handle open_group(const Handle& file, const std::string& name);
Handle create_group(const Handle& file, const std::string& name);

/// Collective. The dataset `name` ("/graph/indptr"), or one that does not exist.
Dataset open_dataset(const Handle& file, const std::string& name);

/// A scalar text attribute, fixed or variable length, of a file or dataset; false when it is absent
/// or not text.
bool read_text_attribute(const Handle& object, const char* name, std::string& value);
/// False where there is a text that cannot be read: the file is damaged.
bool text_attribute_is_sound(const Handle& object, const char* name);
/// A scalar number or truth value (h5py writes an enum) of any width; false when it is absent
/// or neither.
bool read_integer_attribute(const Handle& object, const char* name, std::int64_t& value);
/// Names of the attributes of a file or dataset, ascending.
std::vector<std::string> attribute_names(const Handle& object);
/// What an attribute is, in words: "absent", "the text "1"", "2 values". For a message that wanted
/// something else.
std::string describe_attribute(const Handle& object, const char* name);
/// Of fixed length, 64 KiB at most: texts of variable length lie in a heap of the file that has no
/// checksum, and one wrong byte there lets HDF5 1.10 spin for ever. h5py gives it back as bytes.
bool write_text_attribute(const Handle& object, const char* name, const std::string& value);
/// Of variable length, for texts of any size in files that are checked before HDF5 reads them.
bool write_long_text_attribute(const Handle& object, const char* name, const std::string& value);
void remove_attribute(const Handle& object, const char* name);
bool read_number_attribute(const Handle& object, const char* name, double& value);
bool write_integer_attribute(const Handle& object, const char* name, std::int64_t value);
bool write_number_attribute(const Handle& object, const char* name, double value);
/// A uint8.
bool write_byte_attribute(const Handle& object, const char* name, std::uint8_t value);
/// As h5py writes numpy.bool_.
bool write_bool_attribute(const Handle& object, const char* name, bool value);

/// Rows [begin, end) of a dataset with `columns` values per row.
struct Slab {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t columns = 1;
};

/// Not collective: every rank its own slab, or none. In pieces of at most 1 GiB. False when
/// it failed.
bool read_slab(const Dataset& dataset, hid_t type, const Slab& slab, void* values);
bool write_slab(const Dataset& dataset, hid_t type, const Slab& slab, const void* values);

/// Collective. A new contiguous dataset of this shape (parent groups are made); not valid when
/// that failed.
Dataset create_dataset(const Handle& file, const std::string& name, hid_t type,
                       const std::vector<std::int64_t>& shape);

/// The same with its place in the file given at once, for bytes that HDF5 does not write, and
/// without the time at which it was made.
Dataset reserve_dataset(const Handle& file, const std::string& name, hid_t type,
                        const std::vector<std::int64_t>& shape);

/// Collective: a list of so many texts, each of `longest` letters at most, to be written in parts;
/// of one fixed length (h5py gives them back as bytes). `create`: create_dataset or
/// reserve_dataset.
Dataset create_texts(const Handle& file, const std::string& name, std::int64_t count, std::size_t longest,
                     decltype(create_dataset) create = create_dataset);
/// Not collective. The texts from `begin` on.
bool write_texts_at(const Dataset& dataset, std::int64_t begin, std::span<const std::string> texts);
/// A list of texts of fixed length?
bool holds_fixed_texts(const Dataset& dataset);
/// Not collective. Those of [begin, end) of such a list; false where it is none, or cannot be read.
bool read_texts(const Dataset& dataset, std::int64_t begin, std::int64_t end,
                std::vector<std::string>& texts);

/// Where the bytes of a contiguous dataset begin in its file, user block included; -1 where it
/// has no place.
std::int64_t place_of(const Dataset& dataset);

/// Not collective: opens a file to read it, without a lock: for files that nobody writes, wherever
/// they lie.
Handle open_file_unlocked(const std::string& path);

/// Is there anything of this name below the root?
bool has_link(const Handle& file, const char* name);

/// The names of all data sets below the root, without the first slash.
std::vector<std::string> dataset_names(const Handle& file);

/// By one rank, alone: the others follow where it came through. Opens all data sets of the file and
/// the texts that we read of it, guarded (run_crash_guarded); what is wrong otherwise is for who
/// reads them. In a library, whose process is not ours to guard, the program beside it does that
/// (`espalier look-at`, without MPI); where there is none, nobody does. Throws UserError(kInput,
/// message), or ends the job with it.
void check_structure(const std::string& path, const std::string& message);

/// What `espalier look-at PATH` does: an exit code.
int look_at(const std::string& path);

}  // namespace espalier::hdf5
