#include "espalier/file/hdf5.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "espalier/base/watchdog.hpp"

namespace espalier::hdf5 {

namespace {

std::string& last_reason() {
  static std::string text;
  return text;
}

// Keeps the innermost description of HDF5's error stack, which the next call would clear.
bool succeeded(std::int64_t result) {
  if (result >= 0) return true;
  const auto keep_first = [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
    auto& kept = *static_cast<std::string*>(out);
    if (kept.empty() && error->desc != nullptr) kept = error->desc;
    return 0;
  };
  auto& text = last_reason();
  text.clear();
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &text);
  text.resize(std::min(text.size(), text.find('\n')));
  return false;
}

Handle own(hid_t id, Handle::Close closer) {
  succeeded(id);
  return {id, closer};
}

}  // namespace

Handle& Handle::operator=(Handle&& other) noexcept {
  if (this != &other) {
    close();
    close_ = other.close_;
    id_ = std::exchange(other.id_, -1);
  }
  return *this;
}

bool Handle::close() {
  const hid_t id = std::exchange(id_, -1);
  return id < 0 || close_ == nullptr || succeeded(close_(id));
}

void silence() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

const std::string& reason() {
  return last_reason();
}

// ---- types ----

hid_t half_type() {
  static const hid_t type = [] {
    const hid_t half = H5Tcopy(H5T_IEEE_F32LE);
    // Sign, exponent place and size, mantissa place and size.
    H5Tset_fields(half, 15, 10, 5, 0, 10);
    H5Tset_size(half, 2);
    H5Tset_ebias(half, 15);
    return half;
  }();
  return type;
}

// ---- files ----

namespace {

Handle parallel_access(const Communicator& comm) {
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_mpio(access.id(), comm.native(), Communicator::native_info());
  // One rank reads the structure and tells the others.
  H5Pset_all_coll_metadata_ops(access.id(), true);
  // The structure of files that we write has checksums, since HDF5 1.8.
  H5Pset_libver_bounds(access.id(), H5F_LIBVER_V18, H5F_LIBVER_LATEST);
  return access;
}

}  // namespace

Handle open_file(const Communicator& comm, const std::string& path) {
  const auto access = parallel_access(comm);
  return own(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose);
}

Handle create_file(const Communicator& comm, const std::string& path) {
  const auto access = parallel_access(comm);
  const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_obj_track_times(creation.id(), false);  // the root says nothing of when it was made
  return own(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.id(), access.id()), H5Fclose);
}

Handle open_file_alone(const std::string& path, bool writable) {
  return own(H5Fopen(path.c_str(), writable ? H5F_ACC_RDWR : H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
}

Handle open_file_unlocked(const std::string& path) {
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && H5_VERSION_LE(1, 10, 999))
  H5Pset_file_locking(access.id(), false, true);
#endif
  return own(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()), H5Fclose);
}

bool flush(const Handle& file) {
  return succeeded(H5Fflush(file.id(), H5F_SCOPE_GLOBAL));
}

void remove(const Handle& file, const char* name) {
  if (has_link(file, name)) H5Ldelete(file.id(), name, H5P_DEFAULT);
}

void remove_all(const Handle& file) {
  std::vector<std::string> names;
  const auto note = [](hid_t, const char* name, const H5L_info_t*, void* data) -> herr_t {
    static_cast<std::vector<std::string>*>(data)->emplace_back(name);
    return 0;
  };
  H5Literate(file.id(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, note, &names);
  for (const auto& name : names) remove(file, name.c_str());
}

// ---- groups and datasets ----

Handle open_group(const Handle& file, const std::string& name) {
  if (!has_link(file, name.c_str())) return {};
  return own(H5Gopen2(file.id(), name.c_str(), H5P_DEFAULT), H5Gclose);
}

Handle create_group(const Handle& file, const std::string& name) {
  return own(H5Gcreate2(file.id(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
}

bool Dataset::is_half() const {
  if (!is_float() || type_size != 2) return false;
  const Handle type(H5Dget_type(handle.id()), H5Tclose);
  const Handle big_endian(H5Tcopy(half_type()), H5Tclose);
  H5Tset_order(big_endian.id(), H5T_ORDER_BE);
  return H5Tequal(type.id(), half_type()) > 0 || H5Tequal(type.id(), big_endian.id()) > 0;
}

std::int64_t plain_offset(const Dataset& dataset) {
  const Handle type(H5Dget_type(dataset.handle.id()), H5Tclose),
      layout(H5Dget_create_plist(dataset.handle.id()), H5Pclose);
  const bool plain = H5Tequal(type.id(), H5T_IEEE_F32LE) > 0 || H5Tequal(type.id(), half_type()) > 0;
  if (!plain || H5Pget_layout(layout.id()) != H5D_CONTIGUOUS || H5Pget_external_count(layout.id()) != 0)
    return -1;
  return place_of(dataset);
}

Dataset open_dataset(const Handle& file, const std::string& name) {
  Dataset dataset;
  dataset.name = name;
  for (auto slash = name.find('/', 1); slash != std::string::npos; slash = name.find('/', slash + 1))
    if (!has_link(file, name.substr(0, slash).c_str())) return dataset;
  if (!has_link(file, name.c_str())) return dataset;
  dataset.handle = Handle(H5Dopen2(file.id(), name.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset.exists()) return dataset;
  const Handle space(H5Dget_space(dataset.handle.id()), H5Sclose);
  std::vector<hsize_t> shape(static_cast<std::size_t>(std::max(0, H5Sget_simple_extent_ndims(space.id()))));
  H5Sget_simple_extent_dims(space.id(), shape.data(), nullptr);
  dataset.shape.assign(shape.begin(), shape.end());
  const Handle type(H5Dget_type(dataset.handle.id()), H5Tclose);
  dataset.type_class = H5Tget_class(type.id());
  dataset.type_size = H5Tget_size(type.id());
  dataset.type_signed = !dataset.is_integer() || H5Tget_sign(type.id()) == H5T_SGN_2;
  return dataset;
}

namespace {

Dataset create_dataset_by(const Handle& creation, const Handle& file, const std::string& name, hid_t type,
                          const std::vector<std::int64_t>& shape) {
  Dataset dataset;
  dataset.name = name;
  dataset.shape = shape;
  const std::vector<hsize_t> extent(shape.begin(), shape.end());
  const Handle space(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr), H5Sclose);
  const Handle parents(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(parents.id(), 1);
  H5Pset_fill_time(creation.id(), H5D_FILL_TIME_NEVER);  // every value is written once, by its rank
  dataset.handle =
      own(H5Dcreate2(file.id(), name.c_str(), type, space.id(), parents.id(), creation.id(), H5P_DEFAULT),
          H5Dclose);
  return dataset;
}

}  // namespace

Dataset create_dataset(const Handle& file, const std::string& name, hid_t type,
                       const std::vector<std::int64_t>& shape) {
  return create_dataset_by(Handle(H5Pcreate(H5P_DATASET_CREATE), H5Pclose), file, name, type, shape);
}

Dataset reserve_dataset(const Handle& file, const std::string& name, hid_t type,
                        const std::vector<std::int64_t>& shape) {
  const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_alloc_time(creation.id(), H5D_ALLOC_TIME_EARLY);
  H5Pset_obj_track_times(creation.id(), false);
  return create_dataset_by(creation, file, name, type, shape);
}

std::int64_t place_of(const Dataset& dataset) {
  const auto place = H5Dget_offset(dataset.handle.id());
  return place == HADDR_UNDEF ? -1 : static_cast<std::int64_t>(place);
}

// ---- attributes ----

namespace {

struct Attribute {
  Handle handle, type, space;
};

Attribute open_attribute(const Handle& object, const char* name) {
  Attribute attribute;
  if (H5Aexists(object.id(), name) <= 0) return attribute;
  attribute.handle = Handle(H5Aopen(object.id(), name, H5P_DEFAULT), H5Aclose);
  attribute.type = Handle(H5Aget_type(attribute.handle.id()), H5Tclose);
  attribute.space = Handle(H5Aget_space(attribute.handle.id()), H5Sclose);
  if (H5Sget_simple_extent_npoints(attribute.space.id()) != 1) attribute.handle.close();
  return attribute;
}

bool write_attribute(const Handle& object, const char* name, hid_t file, hid_t memory, const void* value) {
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const Handle attribute(H5Acreate2(object.id(), name, file, space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  return attribute.valid() && H5Awrite(attribute.id(), memory, value) >= 0;
}

Handle text_type(std::size_t length, hid_t like) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.id(), length);
  H5Tset_cset(type.id(), like >= 0 ? H5Tget_cset(like) : H5T_CSET_UTF8);
  return type;
}

}  // namespace

bool read_text_attribute(const Handle& object, const char* name, std::string& value) {
  const auto attribute = open_attribute(object, name);
  if (!attribute.handle.valid() || H5Tget_class(attribute.type.id()) != H5T_STRING) return false;
  if (H5Tis_variable_str(attribute.type.id()) > 0) {
    const auto type = text_type(H5T_VARIABLE, attribute.type.id());
    char* text = nullptr;
    if (H5Aread(attribute.handle.id(), type.id(), &text) < 0) return false;
    value = text == nullptr ? "" : text;
    H5Dvlen_reclaim(type.id(), attribute.space.id(), H5P_DEFAULT, &text);
    return true;
  }
  std::vector<char> text(H5Tget_size(attribute.type.id()) + 1, '\0');
  const auto type = text_type(text.size(), attribute.type.id());
  if (H5Aread(attribute.handle.id(), type.id(), text.data()) < 0) return false;
  value = text.data();
  return true;
}

bool text_attribute_is_sound(const Handle& object, const char* name) {
  std::string text;
  if (read_text_attribute(object, name, text)) return true;
  const auto attribute = open_attribute(object, name);
  return !attribute.handle.valid() || H5Tget_class(attribute.type.id()) != H5T_STRING;
}

bool read_integer_attribute(const Handle& object, const char* name, std::int64_t& value) {
  const auto attribute = open_attribute(object, name);
  if (!attribute.handle.valid()) return false;
  const auto type_class = H5Tget_class(attribute.type.id());
  if (type_class == H5T_INTEGER) return H5Aread(attribute.handle.id(), H5T_NATIVE_INT64, &value) >= 0;
  if (type_class != H5T_ENUM) return false;
  std::vector<char> bytes(H5Tget_size(attribute.type.id()));
  if (H5Aread(attribute.handle.id(), attribute.type.id(), bytes.data()) < 0) return false;
  value = std::any_of(bytes.begin(), bytes.end(), [](char byte) { return byte != 0; });
  return true;
}

std::string describe_attribute(const Handle& object, const char* name) {
  if (H5Aexists(object.id(), name) <= 0) return "absent";
  constexpr std::size_t kMostCharacters = 40;
  std::string text;
  if (read_text_attribute(object, name, text))
    return "the text \"" + text.substr(0, kMostCharacters) + (text.size() > kMostCharacters ? "...\"" : "\"");
  const Handle attribute(H5Aopen(object.id(), name, H5P_DEFAULT), H5Aclose);
  const Handle type(H5Aget_type(attribute.id()), H5Tclose), space(H5Aget_space(attribute.id()), H5Sclose);
  const auto values = H5Sget_simple_extent_npoints(space.id());
  if (values != 1) return std::to_string(values) + " values";
  const auto type_class = H5Tget_class(type.id());
  return type_class == H5T_FLOAT     ? "a floating-point number"
         : type_class == H5T_INTEGER ? "a whole number"
                                     : "neither a number nor text";
}

bool write_text_attribute(const Handle& object, const char* name, const std::string& value) {
  const auto type = text_type(std::max<std::size_t>(1, value.size()), -1);
  H5Tset_strpad(type.id(), H5T_STR_NULLPAD);
  return write_attribute(object, name, type.id(), type.id(), value.c_str());
}

bool write_long_text_attribute(const Handle& object, const char* name, const std::string& value) {
  const auto type = text_type(H5T_VARIABLE, -1);
  const char* text = value.c_str();
  return write_attribute(object, name, type.id(), type.id(), &text);
}

void remove_attribute(const Handle& object, const char* name) {
  if (H5Aexists(object.id(), name) > 0) H5Adelete(object.id(), name);
}

bool write_integer_attribute(const Handle& object, const char* name, std::int64_t value) {
  return write_attribute(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
}

bool read_number_attribute(const Handle& object, const char* name, double& value) {
  const auto attribute = open_attribute(object, name);
  return attribute.handle.valid() && H5Tget_class(attribute.type.id()) == H5T_FLOAT &&
         H5Aread(attribute.handle.id(), H5T_NATIVE_DOUBLE, &value) >= 0;
}

bool write_number_attribute(const Handle& object, const char* name, double value) {
  return write_attribute(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value);
}

bool write_byte_attribute(const Handle& object, const char* name, std::uint8_t value) {
  return write_attribute(object, name, H5T_STD_U8LE, H5T_NATIVE_UINT8, &value);
}

bool write_bool_attribute(const Handle& object, const char* name, bool value) {
  const Handle type(H5Tenum_create(H5T_STD_I8LE), H5Tclose);
  const std::int8_t no = 0, yes = 1, chosen = value ? yes : no;
  H5Tenum_insert(type.id(), "FALSE", &no);
  H5Tenum_insert(type.id(), "TRUE", &yes);
  return write_attribute(object, name, type.id(), type.id(), &chosen);
}

// ---- slabs ----
//
// Every rank moves its own rows by itself. Collective transfers gain nothing where each rank's part
// is one piece of the file, and Open MPI 4.1's (OMPIO) return wrong bytes for some overlapping
// reads, such as [0,2), [1,2), [1,4) on three ranks; ranks do read the same rows where a block row
// has several copies.

namespace {

// Some MPI-IO libraries count bytes in an int.
constexpr std::int64_t kPieceBytes = std::int64_t{1} << 30;

// Calls transfer(memory space, file space, offset in bytes) for each piece of the slab.
template <class Transfer>
bool for_each_piece(const Dataset& dataset, hid_t type, const Slab& slab, Transfer transfer) {
  const auto row_bytes = slab.columns * static_cast<std::int64_t>(H5Tget_size(type));
  if (row_bytes == 0) return true;
  const auto rows_per_piece = std::max<std::int64_t>(1, kPieceBytes / row_bytes);
  bool good = true;
  for (auto begin = slab.begin; begin < slab.end && good; begin += rows_per_piece) {
    const hsize_t start[2] = {static_cast<hsize_t>(begin), 0};
    const hsize_t count[2] = {static_cast<hsize_t>(std::min(rows_per_piece, slab.end - begin)),
                              static_cast<hsize_t>(slab.columns)};
    const Handle file_space(H5Dget_space(dataset.handle.id()), H5Sclose);
    const Handle memory_space(H5Screate_simple(static_cast<int>(dataset.shape.size()), count, nullptr),
                              H5Sclose);
    H5Sselect_hyperslab(file_space.id(), H5S_SELECT_SET, start, nullptr, count, nullptr);
    note_movement();
    good = succeeded(transfer(memory_space.id(), file_space.id(), (begin - slab.begin) * row_bytes));
  }
  return good;
}

}  // namespace

bool read_slab(const Dataset& dataset, hid_t type, const Slab& slab, void* values) {
  return for_each_piece(dataset, type, slab, [&](hid_t memory, hid_t file, std::int64_t offset) {
    return H5Dread(dataset.handle.id(), type, memory, file, H5P_DEFAULT, static_cast<char*>(values) + offset);
  });
}

bool write_slab(const Dataset& dataset, hid_t type, const Slab& slab, const void* values) {
  return for_each_piece(dataset, type, slab, [&](hid_t memory, hid_t file, std::int64_t offset) {
    return H5Dwrite(dataset.handle.id(), type, memory, file, H5P_DEFAULT,
                    static_cast<const char*>(values) + offset);
  });
}

Dataset create_texts(const Handle& file, const std::string& name, std::int64_t count, std::size_t longest,
                     decltype(create_dataset) create) {
  const auto type = text_type(std::max<std::size_t>(1, longest), -1);
  H5Tset_strpad(type.id(), H5T_STR_NULLPAD);
  return create(file, name, type.id(), {count});
}

bool write_texts_at(const Dataset& dataset, std::int64_t begin, std::span<const std::string> texts) {
  constexpr std::size_t kBytes = 16 << 20;
  const Handle type(H5Dget_type(dataset.handle.id()), H5Tclose);
  const auto length = H5Tget_size(type.id());
  const auto most = std::max<std::size_t>(1, kBytes / length);
  std::string padded;
  bool good = true;
  for (std::size_t at = 0; good && at < texts.size(); at += most) {
    const auto piece = texts.subspan(at, std::min(most, texts.size() - at));
    padded.clear();
    for (const auto& text : piece) padded.append(text).append(length - text.size(), '\0');
    const auto first = begin + static_cast<std::int64_t>(at);
    good = write_slab(dataset, type.id(), {first, first + std::ssize(piece), 1}, padded.data());
  }
  return good;
}

bool holds_fixed_texts(const Dataset& dataset) {
  if (!dataset.exists() || dataset.type_class != H5T_STRING || dataset.shape.size() != 1) return false;
  const Handle stored(H5Dget_type(dataset.handle.id()), H5Tclose);
  return H5Tis_variable_str(stored.id()) == 0;
}

bool read_texts(const Dataset& dataset, std::int64_t begin, std::int64_t end,
                std::vector<std::string>& texts) {
  if (!holds_fixed_texts(dataset)) return false;
  const Handle stored(H5Dget_type(dataset.handle.id()), H5Tclose);
  const auto length = dataset.type_size + 1;  // HDF5 ends each with a null
  const auto type = text_type(length, stored.id());
  std::vector<char> letters((end - begin) * length, '\0');
  if (!read_slab(dataset, type.id(), {begin, end, 1}, letters.data())) return false;
  texts.clear();
  for (std::int64_t k = 0; k < end - begin; ++k) texts.emplace_back(letters.data() + k * length);
  return true;
}

bool has_link(const Handle& file, const char* name) {
  return H5Lexists(file.id(), name, H5P_DEFAULT) > 0;
}

std::vector<std::string> attribute_names(const Handle& object) {
  std::vector<std::string> names;
  const auto one = [](hid_t, const char* name, const H5A_info_t*, void* data) -> herr_t {
    static_cast<std::vector<std::string>*>(data)->emplace_back(name);
    return 0;
  };
  H5Aiterate2(object.id(), H5_INDEX_NAME, H5_ITER_INC, nullptr, one, &names);
  return names;
}

std::vector<std::string> dataset_names(const Handle& file) {
  std::vector<std::string> names;
  const auto one = [](hid_t, const char* name, const H5O_info_t* info, void* data) -> herr_t {
    if (info->type == H5O_TYPE_DATASET) static_cast<std::vector<std::string>*>(data)->emplace_back(name);
    return 0;
  };
  H5Ovisit(file.id(), H5_INDEX_NAME, H5_ITER_INC, one, &names);
  return names;
}

}  // namespace espalier::hdf5
