#include "espalier/graph/hdf5_output.hpp"

#include <unistd.h>

#include <array>

#include "espalier/base/error.hpp"
#include "espalier/base/log.hpp"
#include "espalier/comm/agree.hpp"

namespace espalier::hdf5 {

namespace {

// Two files that Open MPI has each rank open beside the one it creates, until the close, for
// pointers that we do not share. They go as soon as they are there; where a rank is killed before
// that, another has them in its list.
class SideFiles {
 public:
  SideFiles(const std::string& path, int rank)
      : names_{fmt::format("{}.data.{}", path, rank), fmt::format("{}.metadata.{}", path, rank)},
        watched_{TemporaryFile(names_[0]), TemporaryFile(names_[1])} {}

  void remove() const {
    for (const auto& name : names_) unlink(name.c_str());
  }

 private:
  std::array<std::string, 2> names_;
  std::array<TemporaryFile, 2> watched_;
};

}  // namespace

Output::Output(const Communicator& comm, const OutputFile& output) : comm_(comm), output_(output) {
  silence();
  agree(comm, [&] {
    if (comm.rank() == 0) check_output(output);
  });
  temporary_ = comm.broadcast_text(fmt::format("{}.partial-{}", output.path, getpid()), 0, "output file");
  watched_.emplace(temporary_);
  const SideFiles mine(temporary_, comm.rank()), of_next(temporary_, (comm.rank() + 1) % comm.size());
  file_ = create_file(comm, temporary_);
  mine.remove();
  agree(comm, [&] {
    if (!file_.valid()) usage_error("cannot create {}: {}", temporary_, reason());
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
      if (!good) usage_error("cannot write {} of {}: {}; is the disk full?", what, output_.path, reason());
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
