#include "sealed_hdf5.hpp"

#include <zlib.h>

#include <algorithm>

#include "checkpoint_seal.hpp"
#include "espalier/base/buffer.hpp"
#include "espalier/base/error.hpp"

namespace espalier {

namespace {

constexpr char kSignature[] = "\x89HDF\r\n\x1a\n";

// The seal that fits the bytes behind it.
std::string block_of(const std::string& bytes, const std::string& title) {
  const auto* data = reinterpret_cast<const Bytef*>(bytes.data());
  const auto checksum = crc32_z(crc32_z(0, nullptr, 0), data + kUserBlock, bytes.size() - kUserBlock);
  return seal_of(title, std::ssize(bytes), static_cast<std::uint32_t>(checksum));
}

hdf5::Handle in_memory(const std::string* image) {
  hdf5::Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access.id(), std::size_t{1} << 20, 0);
  if (image != nullptr) H5Pset_file_image(access.id(), const_cast<char*>(image->data()), image->size());
  return access;
}

void require(bool good, const std::string& what) {
  if (!good)
    throw UserError(ExitCode::kInternal,
                    fmt::format("cannot make a file in memory: {}: {}", what, hdf5::reason()));
}

template <class T>
hid_t native_type() {
  return std::is_same_v<T, float> ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
}

}  // namespace

hdf5::Handle create_sealed() {
  hdf5::silence();
  const hdf5::Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_userblock(creation.id(), kUserBlock);
  const auto access = in_memory(nullptr);
  hdf5::Handle file(H5Fcreate("sealed", H5F_ACC_TRUNC, creation.id(), access.id()), H5Fclose);
  require(file.valid(), "its beginning");
  return file;
}

std::string sealed_bytes(const hdf5::Handle& file, const std::string& title) {
  require(hdf5::flush(file), "its end");
  const auto size = H5Fget_file_image(file.id(), nullptr, 0);
  require(size > 0, "its bytes");
  std::string bytes(static_cast<std::size_t>(size), '\0');
  require(H5Fget_file_image(file.id(), bytes.data(), bytes.size()) > 0, "its bytes");
  // HDF5 gives the file without its user block.
  if (bytes.starts_with(kSignature)) bytes.insert(0, kUserBlock, '\0');
  const auto block = block_of(bytes, title);
  std::ranges::copy(block, bytes.begin());
  return bytes;
}

bool has_seal(const std::string& bytes, const std::string& title) {
  return bytes.starts_with(title + "\n");
}

hdf5::Handle open_sealed(const std::string& bytes, const std::string& title, const std::string& path) {
  if (std::ssize(bytes) < kUserBlock || !has_seal(bytes, title))
    input_error("{}: its first bytes are not \"{}\"", path, title);
  const std::string found = bytes.c_str();  // the block ends with zeros
  const auto length = fmt::format("\nbytes {}\n", bytes.size());
  if (found.find(length) == std::string::npos)
    input_error("{}: is damaged: it has {} bytes, not as many as were written", path, bytes.size());
  if (!bytes.starts_with(block_of(bytes, title)))
    input_error("{}: is damaged: its checksum does not fit its bytes", path);
  hdf5::silence();
  const auto access = in_memory(&bytes);
  hdf5::Handle file(H5Fopen("sealed", H5F_ACC_RDONLY, access.id()), H5Fclose);
  if (!file.valid()) input_error("{}: is no HDF5 file behind its first {} bytes", path, kUserBlock);
  return file;
}

template <class T>
void write_matrix(const hdf5::Handle& file, const std::string& name, std::int64_t rows, std::int64_t columns,
                  const T* values) {
  const auto type = std::is_same_v<T, float> ? H5T_IEEE_F32LE : H5T_IEEE_F64LE;
  const auto dataset = hdf5::create_dataset(file, "/" + name, type, {rows, columns});
  require(dataset.exists() && hdf5::write_slab(dataset, native_type<T>(), {0, rows, columns}, values), name);
}

template <class T>
StoredMatrix<T> read_matrix(const hdf5::Handle& file, const std::string& name, const std::string& path) {
  const auto dataset = hdf5::open_dataset(file, "/" + name);
  if (!dataset.exists()) return {};
  if (dataset.shape.size() != 2 || !dataset.is_float())
    input_error("{}: {} is no matrix of numbers", path, name);
  StoredMatrix<T> matrix{dataset.rows(), dataset.columns(), {}};
  matrix.values.resize(matrix.rows * matrix.columns);
  if (!hdf5::read_slab(dataset, native_type<T>(), {0, matrix.rows, matrix.columns}, matrix.values.data()))
    input_error("{}: {} cannot be read: {}", path, name, hdf5::reason());
  return matrix;
}

template void write_matrix(const hdf5::Handle&, const std::string&, std::int64_t, std::int64_t, const float*);
template void write_matrix(const hdf5::Handle&, const std::string&, std::int64_t, std::int64_t,
                           const double*);
template StoredMatrix<float> read_matrix(const hdf5::Handle&, const std::string&, const std::string&);
template StoredMatrix<double> read_matrix(const hdf5::Handle&, const std::string&, const std::string&);

}  // namespace espalier
