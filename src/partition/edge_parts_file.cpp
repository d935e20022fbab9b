#include "espalier/partition/edge_parts.hpp"

#include <fmt/format.h>

#include <numeric>

#include "espalier/base/error.hpp"
#include "espalier/comm/communicator.hpp"
#include "proposals.hpp"
#include "sidecar.hpp"

namespace espalier {

namespace {

class EdgePartsSidecar {
 public:
  explicit EdgePartsSidecar(const std::string& path)
      : sidecar_("edge parts", path, "make them with `espalier partition GRAPH --edges`") {}

  EdgePartsInfo read() {
    std::int64_t parts = 0;
    const auto head = sidecar_.open("espalier-edge-parts", [&](const SidecarHead&) { return look(parts); });
    EdgePartsInfo info = {head.method, head.pattern, std::vector<std::int64_t>(parts)};
    sidecar_.read_array(entries_, std::span(info.entries), 1);
    std::int64_t sum = 0;
    for (const auto of_part : info.entries)
      if (of_part < 0 || __builtin_add_overflow(sum, of_part, &sum)) sum = -1;
    if (sum != part_.rows())
      sidecar_.fail(fmt::format("/entries does not add up to the {} entries of /part", part_.rows()));
    return info;
  }

 private:
  // What is wrong with the structure, or nothing.
  std::string look(std::int64_t& parts) {
    const auto& file = sidecar_.file();
    if (!hdf5::read_integer_attribute(file, "parts", parts) || parts < 1 || parts > kMostEdgeParts)
      return fmt::format("its attribute parts is {}, not a number from 1 to {}",
                         hdf5::describe_attribute(file, "parts"), kMostEdgeParts);
    part_ = hdf5::open_dataset(file, "/part");
    entries_ = hdf5::open_dataset(file, "/entries");
    for (const auto* dataset : {&part_, &entries_})
      if (auto wrong = sidecar_.check_integers(*dataset); !wrong.empty()) return wrong;
    const std::size_t bytes = parts <= 256 ? 1 : 2;
    if (part_.shape.size() != 1 || part_.type_size != bytes || part_.type_signed)
      return fmt::format("/part is not one row of uint{}", 8 * bytes);
    if (entries_.shape.size() != 1 || entries_.type_size != 8 || entries_.rows() != parts)
      return fmt::format("/entries is not int64 [{}]", parts);
    const auto all = part_.rows() * static_cast<std::int64_t>(bytes) + 8 * parts;
    if (part_.rows() > sidecar_.size() || all > sidecar_.size())
      return fmt::format("is cut off, or compressed: {} bytes, and its arrays have {}", sidecar_.size(), all);
    return "";
  }

  SidecarReader sidecar_;
  hdf5::Dataset part_, entries_;
};

}  // namespace

std::int64_t EdgePartsInfo::edges() const {
  return std::accumulate(entries.begin(), entries.end(), std::int64_t{0});
}

EdgePartsInfo read_edge_parts_info(const Communicator& comm, const std::string& path) {
  hdf5::silence();
  EdgePartsInfo info;
  agree(comm, [&] {
    if (comm.rank() == 0) info = EdgePartsSidecar(path).read();
  });
  std::int64_t head[] = {info.parts(), info.pattern.has_value(),
                         static_cast<std::int64_t>(info.pattern.value_or(0))};
  comm.broadcast(std::span<std::int64_t>(head), 0, kCut);
  info.method = comm.broadcast_text(info.method, 0, kCut);
  if (head[1] != 0) info.pattern = static_cast<std::uint64_t>(head[2]);
  info.entries.resize(static_cast<std::size_t>(head[0]));
  comm.broadcast(std::span(info.entries), 0, kCut);
  return info;
}

struct EdgePartsReader::Open {
  const Communicator& comm;
  std::string path;
  EdgePartsInfo info;
  SidecarReader sidecar;
  hdf5::Handle file;
  hdf5::Dataset part;
  std::uint64_t digest = 0;
};

EdgePartsReader::EdgePartsReader(const Communicator& comm, std::string path, EdgePartsInfo info)
    : open_(new Open{
          comm, path, std::move(info), SidecarReader("edge parts", path, "write it again"), {}, {}}) {
  agree(comm, [&] {
    open_->file = hdf5::open_file_unlocked(path);
    if (open_->file.valid()) open_->part = hdf5::open_dataset(open_->file, "/part");
    if (!open_->part.exists() || open_->part.rows() != open_->info.edges())
      open_->sidecar.fail("changed, or cannot be opened: " + hdf5::reason());
  });
}
EdgePartsReader::~EdgePartsReader() = default;
EdgePartsReader::EdgePartsReader(EdgePartsReader&&) noexcept = default;

const EdgePartsInfo& EdgePartsReader::info() const {
  return open_->info;
}

Buffer<std::uint16_t> EdgePartsReader::read(std::int64_t begin, std::int64_t end) {
  Buffer<std::uint16_t> parts(end - begin);
  const auto read_as = [&](auto number) {
    using Number = decltype(number);
    Buffer<Number> stored(end - begin);
    if (!hdf5::read_slab(open_->part, hdf5::memory_type<Number>(), {begin, end, 1}, stored.data()))
      open_->sidecar.fail("cannot read /part: " + hdf5::reason());
    open_->digest += content_digest(std::span<const Number>(stored), begin);
    std::ranges::copy(stored, parts.begin());
  };
  agree(open_->comm, [&] {
    if (open_->part.type_size == 1)
      read_as(std::uint8_t());
    else
      read_as(std::uint16_t());
    const auto none = std::ranges::find_if(parts, [&](int part) { return part >= open_->info.parts(); });
    if (none != parts.end())
      open_->sidecar.fail(fmt::format("entry {} is in part {} of {}", begin + (none - parts.begin()), *none,
                                      open_->info.parts()));
  });
  return parts;
}

void EdgePartsReader::check() const {
  const auto digest = open_->comm.all_reduce(open_->digest, Reduction::kSum, kCut);
  agree(open_->comm, [&] { open_->sidecar.check_digest(open_->part, digest); });
}

}  // namespace espalier
