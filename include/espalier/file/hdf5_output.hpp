// An HDF5 file that all ranks of a communicator write together, each its own rows of each data set.
// It appears under its name only when everything is written: until commit() it is a temporary
// beside it, removed when anything fails. Or memory that one rank writes.
#pragma once

#include <optional>
#include <string>

#include "espalier/base/output_file.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/file/destination.hpp"
#include "espalier/file/hdf5.hpp"

namespace espalier::hdf5 {

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
