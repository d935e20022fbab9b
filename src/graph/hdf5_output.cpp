#include "espalier/graph/hdf5_output.hpp"

#include <unistd.h>

#include "espalier/base/error.hpp"
#include "espalier/base/log.hpp"
#include "espalier/comm/agree.hpp"

namespace espalier::hdf5 {

Output::Output(const Communicator& comm, const OutputFile& output) : comm_(comm), output_(output) {
  silence();
  agree(comm, [&] {
    if (comm.rank() == 0) check_output(output);
  });
  temporary_ = comm.broadcast_text(fmt::format("{}.partial-{}", output.path, getpid()), 0, "output file");
  watched_.emplace(temporary_);
  {
    // Open MPI has each rank open two more beside it, for pointers that we do not share, until
    // the close.
    const auto data = fmt::format("{}.data.{}", temporary_, comm.rank()),
               metadata = fmt::format("{}.metadata.{}", temporary_, comm.rank());
    const TemporaryFile of_data(data), of_metadata(metadata);
    file_ = create_file(comm, temporary_);
    unlink(data.c_str());
    unlink(metadata.c_str());
  }
  agree(comm, [&] {
    if (!file_.valid()) input_error("cannot create {}: {}", temporary_, reason());
  });
}

Output::~Output() {
  if (failed_) make_closable();
  file_.close();
  if (!committed_ && comm_.rank() == 0) unlink(temporary_.c_str());
}

// Collective. A file that cannot be written cannot be closed either: H5Fclose fails half way, and
// HDF5 1.10 then crashes in MPI_Finalize. Giving back its space and forgetting its arrays lets the
// close succeed on a full disk.
void Output::make_closable() {
  if (comm_.rank() == 0 && truncate(temporary_.c_str(), 0) != 0) log::debug("cannot empty {}", temporary_);
  comm_.barrier();
  remove_all(file_);
}

void Output::require(bool good, const std::string& what) {
  try {
    agree(comm_, [&] {
      if (!good) input_error("cannot write {} of {}: {}; is the disk full?", what, output_.path, reason());
    });
  } catch (const UserError&) {
    failed_ = true;
    throw;
  }
}

void Output::commit() {
  require(flush(file_), "the last part");
  require(file_.close(), "the end");
  agree(comm_, [&] {
    if (comm_.rank() == 0) put_in_place(temporary_, output_);
  });
  committed_ = true;
}

}  // namespace espalier::hdf5
