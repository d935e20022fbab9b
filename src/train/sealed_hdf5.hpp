// A small HDF5 file that is made and read in memory, behind a seal:
//
//     bytes 0 .. 511      a user block, text: a title as "espalier-weights 1", the length of the
//                         file, CRC-32 of all that follows
//
// The length and the checksum stand before what they protect, so damage is found before HDF5 reads
// a byte of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/graph/hdf5.hpp"

namespace espalier {

/// A new file in memory. Members below throw UserError(kInternal) when HDF5 fails.
hdf5::Handle create_sealed();

/// Its bytes, sealed.
std::string sealed_bytes(const hdf5::Handle& file, const std::string& title);

/// Does a file begin with a seal of this title?
bool has_seal(const std::string& bytes, const std::string& title);

/// Opens what sealed_bytes made. The bytes must stay. Throws UserError(kInput), naming `path` and
/// the damage.
hdf5::Handle open_sealed(const std::string& bytes, const std::string& title, const std::string& path);

/// A matrix of float or double. Reading gives an empty one where there is none, and throws
/// UserError(kInput), naming `path`, where it is something else or cannot be read.
template <class T>
void write_matrix(const hdf5::Handle& file, const std::string& name, std::int64_t rows, std::int64_t columns,
                  const T* values);
template <class T>
struct StoredMatrix {
  std::int64_t rows = 0, columns = 0;
  Buffer<T> values;
};
template <class T>
StoredMatrix<T> read_matrix(const hdf5::Handle& file, const std::string& name, const std::string& path);

}  // namespace espalier
