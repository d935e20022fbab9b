// Files of HDF5 that are written: in memory, by one process, and on a disk, by all ranks.
#include "espalier/file/hdf5_output.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>

#include "espalier/base/error.hpp"
#include "espalier/base/log.hpp"
#include "espalier/comm/communicator.hpp"

// ---- in memory ----
//
// A driver of HDF5: where the library reads and writes, this reads and writes WrittenBytes.

#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h>
#endif

#include <algorithm>
#include <cstring>
#include <limits>

namespace espalier::hdf5 {

namespace {

// Calls piece(page, first byte in it, how many, offset in [at, at + count)).
template <class Piece>
void for_each_page(std::int64_t page_bytes, std::int64_t at, std::int64_t count, Piece piece) {
  for (std::int64_t offset = 0; offset < count;) {
    const auto first = (at + offset) % page_bytes;
    const auto part = std::min(page_bytes - first, count - offset);
    piece((at + offset) / page_bytes, first, part, offset);
    offset += part;
  }
}

}  // namespace

void WrittenBytes::write(std::int64_t at, std::int64_t count, const void* from) {
  for_each_page(kPage, at, count,
                [&](std::int64_t number, std::int64_t first, std::int64_t part, std::int64_t offset) {
                  auto& page = pages_.try_emplace(number, Page{}).first->second;
                  std::memcpy(page.data() + first, static_cast<const char*>(from) + offset,
                              static_cast<std::size_t>(part));
                });
  size_ = std::max(size_, at + count);
}

void WrittenBytes::read(std::int64_t at, std::int64_t count, void* to) const {
  for_each_page(kPage, at, count,
                [&](std::int64_t number, std::int64_t first, std::int64_t part, std::int64_t offset) {
                  auto* const out = static_cast<char*>(to) + offset;
                  const auto page = pages_.find(number);
                  if (page == pages_.end())
                    std::memset(out, 0, static_cast<std::size_t>(part));
                  else
                    std::memcpy(out, page->second.data() + first, static_cast<std::size_t>(part));
                });
}

// ---- the driver ----

namespace {

// What HDF5 calls a file: its own part must come first.
struct OpenFile {
  H5FD_t its = {};
  WrittenBytes* bytes = nullptr;
  haddr_t allocated = 0;  // the end of what HDF5 has given away
};

OpenFile& of(H5FD_t* file) {
  return *reinterpret_cast<OpenFile*>(file);
}
const OpenFile& of(const H5FD_t* file) {
  return *reinterpret_cast<const OpenFile*>(file);
}

H5FD_t* open_file_of(const char*, unsigned, hid_t access, haddr_t) {
  const auto* info = static_cast<WrittenBytes* const*>(H5Pget_driver_info(access));
  return info == nullptr ? nullptr : &(new OpenFile{{}, *info, 0})->its;
}

herr_t close_file(H5FD_t* file) {
  auto* const open = &of(file);
  open->bytes->resize(std::max(open->bytes->size(), static_cast<std::int64_t>(open->allocated)));
  delete open;
  return 0;
}

// As the driver for a plain file: small pieces are put together.
herr_t tell_features(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t allocated_end(const H5FD_t* file, H5FD_mem_t) {
  return of(file).allocated;
}

herr_t set_allocated_end(H5FD_t* file, H5FD_mem_t, haddr_t end) {
  of(file).allocated = end;
  return 0;
}

haddr_t written_end(const H5FD_t* file, H5FD_mem_t) {
  return static_cast<haddr_t>(of(file).bytes->size());
}

herr_t read_bytes(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, size_t count, void* to) {
  of(file).bytes->read(static_cast<std::int64_t>(at), static_cast<std::int64_t>(count), to);
  return 0;
}

herr_t write_bytes(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, size_t count, const void* from) {
  of(file).bytes->write(static_cast<std::int64_t>(at), static_cast<std::int64_t>(count), from);
  return 0;
}

H5FD_class_t describe_driver() {
  H5FD_class_t driver = {};
#ifdef H5FD_CLASS_VERSION  // HDF5 1.14
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(512);  // of those for private use
#endif
  driver.name = "espalier-memory";
  driver.maxaddr = static_cast<haddr_t>(std::numeric_limits<std::int64_t>::max());
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = sizeof(WrittenBytes*);
  driver.open = open_file_of;
  driver.close = close_file;
  driver.query = tell_features;
  driver.get_eoa = allocated_end;
  driver.set_eoa = set_allocated_end;
  driver.get_eof = written_end;
  driver.read = read_bytes;
  driver.write = write_bytes;
  constexpr H5FD_mem_t map[] = H5FD_FLMAP_DICHOTOMY;
  std::ranges::copy(map, driver.fl_map);
  return driver;
}

hid_t registered_driver() {
  static const H5FD_class_t driver = describe_driver();
  static const hid_t id = H5FDregister(&driver);
  return id;
}

}  // namespace

static Handle access_to(WrittenBytes& bytes) {
  auto* const info = &bytes;
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  if (H5Pset_driver(access.id(), registered_driver(), &info) < 0) return {};
  return access;
}

Handle create_in_memory(WrittenBytes& bytes, std::int64_t user_block) {
  bytes = {};
  const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose), access = access_to(bytes);
  H5Pset_userblock(creation.id(), static_cast<hsize_t>(user_block));
  if (!access.valid()) return {};
  return {H5Fcreate("in memory", H5F_ACC_TRUNC, creation.id(), access.id()), H5Fclose};
}

Handle open_in_memory(WrittenBytes& bytes) {
  const Handle access = access_to(bytes);
  if (!access.valid()) return {};
  return {H5Fopen("in memory", H5F_ACC_RDONLY, access.id()), H5Fclose};
}

// ---- by all ranks ----

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
