#include "espalier/file/hdf5_output.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>

#include "espalier/base/error.hpp"
#include "espalier/base/log.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/file/hdf5_memory.hpp"

namespace espalier::hdf5 {

namespace {

// Two files that Open MPI has each rank open beside the one it creates, until the close, for
// pointers that we do not share. They go as soon as they are there; where ranks are killed before
// that, one of kWatchers others has them in its list.
constexpr int kWatchers = 4;
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

Output::Output(const Communicator& comm, const Destination& destination)
    : comm_(comm), destination_(destination) {
  silence();
  if (destination.memory == nullptr) {
    create_on_disk();
    return;
  }
  ESPALIER_CHECK(comm.size() == 1, "{} ranks write to the memory of one", comm.size());
  file_ = create_in_memory(*destination.memory, 0);
  ESPALIER_CHECK(file_.valid(), "cannot create a file in memory: {}", reason());
}

void Output::create_on_disk() {
  const auto& output = destination_.file;
  agree(comm_, [&] {
    if (comm_.rank() != 0) return;
    check_output(output);
    partial_.emplace(output.path);
  });
  temporary_ = comm_.broadcast_text(partial_ ? partial_->name() : "", 0, "output file");
  watched_.emplace(temporary_);
  const SideFiles mine(temporary_, comm_.rank());
  std::deque<SideFiles> of_next;
  for (int r = 1; r <= std::min(kWatchers, comm_.size() - 1); ++r)
    of_next.emplace_back(temporary_, (comm_.rank() + r) % comm_.size());
  file_ = create_file(comm_, temporary_);
  if (partial_) partial_->hold();
  mine.remove();
  agree(comm_, [&] {
    if (!file_.valid()) usage_error("cannot create {}: {}", temporary_, reason());
  });
}

Output::~Output() {
  if (failed_ && watched_) make_closable();
  file_.close();
  if (!committed_ && watched_ && comm_.rank() == 0) unlink(temporary_.c_str());
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
      if (!good)
        usage_error("cannot write {} of {}: {}; is the disk full?", what, destination_.file.path, reason());
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
    if (comm_.rank() == 0 && watched_) put_in_place(temporary_, destination_.file);
  });
  partial_.reset();
  committed_ = true;
}

}  // namespace espalier::hdf5
