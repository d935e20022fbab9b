// An HDF5 file in memory of which only those bytes take memory that HDF5 has written: the frame of
// a file whose large data sets others write, and that HDF5 must not write itself (it crashes where
// a disk is full).
//
//     hdf5::WrittenBytes bytes;
//     {
//       const auto file = hdf5::create_in_memory(bytes, 512);
//       ... attributes; data sets by hdf5::reserve_dataset, whose bytes stay unwritten
//     }
//     bytes.read(...)   // the file: the rest of it, and zeros where those data sets lie
//
// Or a whole file that no disk is to hold.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "espalier/file/hdf5.hpp"

namespace espalier::hdf5 {

/// Bytes [0, size), zero where nothing was written.
class WrittenBytes {
 public:
  std::int64_t size() const { return size_; }
  void resize(std::int64_t size) { size_ = size; }
  void write(std::int64_t at, std::int64_t count, const void* from);
  void read(std::int64_t at, std::int64_t count, void* to) const;

 private:
  static constexpr std::int64_t kPage = 4096;
  using Page = std::array<char, kPage>;

  std::int64_t size_ = 0;
  std::map<std::int64_t, Page> pages_;  ///< by number; those that were written to
};

/// Not collective. A new file whose bytes go to `bytes`, which must outlive the handle; all are
/// there when the file is closed. `user_block`: bytes before HDF5's, a power of two from 512 on.
/// Not valid when that failed.
Handle create_in_memory(WrittenBytes& bytes, std::int64_t user_block);

/// Not collective. Opens what was written there, to read it. `bytes` must outlive the handle.
Handle open_in_memory(WrittenBytes& bytes);

}  // namespace espalier::hdf5
