// An HDF5 file that all ranks of a communicator write together, each its own rows of each data set.
// It appears under its name only when everything is written: until commit() it is a temporary
// beside it, removed when anything fails. Or memory that one rank writes: WrittenBytes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "espalier/base/output_file.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/file/destination.hpp"
#include "espalier/file/hdf5.hpp"

namespace espalier::hdf5 {

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

class Output {
 public:
  /// Collective. Creates the temporary. Every member throws UserError(kUsage) on every rank when
  /// the disk refuses, this one also as check_output() does. `comm` must outlive it.
  Output(const Communicator& comm, const Destination& destination);
  /// Collective. Removes the temporary unless commit() succeeded. All data sets must be closed.
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  const Communicator& comm() const { return comm_; }
  const Handle& file() const { return file_; }

  /// Collective. Throws on every rank when `good` is false on any; `what`: of the file, in
  /// the message.
  void require(bool good, const std::string& what);

  /// Collective, when all data sets are closed. Closes the file and gives it its name as
  /// put_in_place() does: a file that appeared there meanwhile is replaced only when that is
  /// allowed, else this one stays beside it under another name.
  void commit();

 private:
  void create_on_disk();
  void make_closable();

  const Communicator& comm_;
  Destination destination_;
  std::optional<PartialFile> partial_;  // of rank 0
  std::string temporary_;
  std::optional<TemporaryFile> watched_;  // by every rank: it goes with whichever a signal reaches
  Handle file_;
  bool failed_ = false;
  bool committed_ = false;
};

}  // namespace espalier::hdf5
