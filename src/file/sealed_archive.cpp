// Sealed archives are made of a frame, which one process has HDF5 make in memory, and of the rows
// of their tensors, which all ranks write where the frame leaves room for them: HDF5 itself
// crashes where a disk is full. Ranks take checksums of ranges of their own, in any order; what
// they come to does not depend on how the file was cut.
#include <zlib.h>

#include <algorithm>
#include <bit>

#include "espalier/base/error.hpp"
#include "espalier/base/ranged_file.hpp"
#include "espalier/base/watchdog.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/file/archive.hpp"
#include "espalier/file/hdf5_output.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kUserBlock = 512, kBlock = std::int64_t{4} << 20;
constexpr const char* kLabel = "checkpoint";
constexpr fmt::format_string<const std::string&> kChecksum =
    "{}: is damaged: its checksum does not fit its bytes";

// ---- seals ----

// CRC-32 of bytes [begin, end) of a file.
struct RangeChecksum {
  std::int64_t begin = 0, end = 0;
  std::uint32_t crc = 0;
};

std::uint32_t crc_of(const char* bytes, std::int64_t count) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes), count));
}

// Adds that of bytes[count], which are those of the file from `begin` on; to the last range, where
// that ends there.
void add_checksum(std::int64_t begin, const char* bytes, std::int64_t count,
                  std::vector<RangeChecksum>& checksums) {
  if (count == 0) return;
  const auto crc = crc_of(bytes, count);
  if (checksums.empty() || checksums.back().end != begin) checksums.push_back({begin, begin, 0});
  auto& last = checksums.back();
  last.crc = static_cast<std::uint32_t>(crc32_combine(last.crc, crc, count));
  last.end += count;
}

std::string title_of(const ArchiveFormat& format) {
  return fmt::format("{} 1", format.name);
}

// The user block.
std::string seal_of(const ArchiveFormat& format, std::int64_t size, std::uint32_t crc) {
  auto block = fmt::format("{}\nbytes {}\ncrc32 {:08x}\n", title_of(format), size, crc);
  block.resize(kUserBlock, '\0');
  return block;
}

// Collective. That of a file of `size` bytes: the ranges of all ranks together are those behind
// the user block, each once.
std::string seal_of(const Communicator& world, const ArchiveFormat& format,
                    const std::vector<RangeChecksum>& mine, std::int64_t size) {
  auto all = world.all_gather_v(std::span<const RangeChecksum>(mine), kLabel);
  std::ranges::sort(all, {}, &RangeChecksum::begin);
  uLong crc = 0;
  auto end = kUserBlock;
  for (const auto& range : all) {
    ESPALIER_CHECK(range.begin == end, "bytes {} to {} of {} are nobody's or of two", end, range.begin,
                   format.noun);
    crc = crc32_combine(crc, range.crc, range.end - range.begin);
    end = range.end;
  }
  ESPALIER_CHECK(end == size, "bytes {} to {} of {} are nobody's", end, size, format.noun);
  return seal_of(format, size, static_cast<std::uint32_t>(crc));
}

// Throws where the beginning of a file of `size` bytes is that of another format, or length.
void check_beginning(const ArchiveFormat& format, const std::string& beginning, std::int64_t size,
                     const std::string& path) {
  if (std::ssize(beginning) < kUserBlock || !beginning.starts_with(title_of(format)))
    input_error("{}: is no {} of this program (its first bytes are not \"{}\")", path, format.noun,
                title_of(format));
  const std::string text = beginning.c_str();  // the block ends with zeros
  const auto size_at = text.find("bytes ") + 6;
  if (!text.substr(std::min(size_at, text.size())).starts_with(fmt::format("{}\n", size)))
    input_error("{}: is damaged: it has {} bytes and was written with {}", path, size,
                text.substr(size_at, text.find('\n', size_at) - size_at));
}

std::vector<RangeChecksum> checksums_of(const RangedFile& file, RowRange range, const std::string& path) {
  std::vector<RangeChecksum> checksums;
  Buffer<char> bytes(static_cast<std::size_t>(std::min(kBlock, range.size())));
  for (auto at = range.begin; at < range.end; at += kBlock) {
    const auto count = std::min(kBlock, range.end - at);
    const auto read = file.read(at, bytes.data(), count);
    if (read < count) input_error("{}: is damaged: it ends at byte {}", path, at + read);
    add_checksum(at, bytes.data(), read, checksums);
  }
  return checksums;
}

std::string beginning_of(const RangedFile& file) {
  std::string beginning(kUserBlock, '\0');
  beginning.resize(static_cast<std::size_t>(file.read(0, beginning.data(), kUserBlock)));
  return beginning;
}

}  // namespace

void check_seal(const Communicator& world, const ArchiveFormat& format, const std::string& path) {
  RangedFile file;
  std::int64_t size = 0;
  std::string beginning;
  agree(world, [&] {
    file = RangedFile::open(path);
    if (world.rank() != 0) return;
    beginning = beginning_of(file);
    size = file.size();
    check_beginning(format, beginning, size, path);
  });
  world.broadcast(&size, 1, 0, "setup");
  std::vector<RangeChecksum> mine;
  agree(world, [&] {
    const auto range = even_range(size - kUserBlock, world.size(), world.rank());
    mine = checksums_of(file, {range.begin + kUserBlock, range.end + kUserBlock}, path);
  });
  const auto seal = seal_of(world, format, mine, size);
  agree(world, [&] {
    if (world.rank() == 0 && beginning != seal) input_error(kChecksum, path);
  });
}

bool is_sealed_as(const ArchiveFormat& format, const std::string& path) {
  return beginning_of(RangedFile::open(path)).starts_with(title_of(format) + "\n");
}

ArchiveReader::ArchiveReader(const ArchiveFormat& format, const std::string& path, const std::string& bytes)
    : format_(format), path_(path) {
  const auto size = std::ssize(bytes);
  const auto beginning = bytes.substr(0, kUserBlock);
  check_beginning(format, beginning, size, path);
  if (beginning != seal_of(format, size, crc_of(bytes.data() + kUserBlock, size - kUserBlock)))
    input_error(kChecksum, path);
  hdf5::silence();
  opened_->size = size;
  opened_->image.write(0, size, bytes.data());
  opened_->file = hdf5::open_in_memory(opened_->image);
  check_head();
}

// ---- writing ----

void ArchiveWriter::numbers(const std::string& name, const std::vector<std::int64_t>& shape,
                            const std::vector<double>& values) {
  const hdf5::Slab slab{0, shape[0], shape.size() > 1 ? shape[1] : 1};
  const auto dataset = hdf5::reserve_dataset(object_, name, hdf5::file_type<double>(), shape);
  note(dataset.exists() &&
       (values.empty() || hdf5::write_slab(dataset, hdf5::memory_type<double>(), slab, values.data())));
}

namespace {

// Where each tensor's bytes begin, and as the last one where the file ends.
using Places = std::vector<std::int64_t>;

constexpr auto kNumberBytes = std::int64_t{sizeof(float)};

// The file but for its user block and the rows of its tensors.
hdf5::WrittenBytes frame_of(const ArchiveFormat& format, const std::vector<StateTensor>& tensors,
                            const WriteRest& rest, Places& places) {
  hdf5::silence();
  hdf5::WrittenBytes bytes;
  auto file = hdf5::create_in_memory(bytes, kUserBlock);
  ArchiveWriter writer(file, format, /*sealed=*/true);
  rest(writer);
  places.clear();
  for (const auto& tensor : tensors) {
    const auto type = tensor.words ? H5T_STD_U32LE : hdf5::file_type<float>();
    const auto dataset = hdf5::reserve_dataset(file, "/" + tensor.name, type, {tensor.rows, tensor.columns});
    places.push_back(hdf5::place_of(dataset));
    writer.note(tensor.size() == 0 ? dataset.exists() : places.back() > 0);
  }
  if (!writer.good() || !file.close())
    throw UserError(ExitCode::kInternal, fmt::format("cannot make {}: {}", format.noun, hdf5::reason()));
  places.push_back(bytes.size());
  return bytes;
}

// write(place, bytes, how many) for all rows of tensors that are mine.
template <class Write>
void write_tensors(const std::vector<StateTensor>& tensors, const Places& places, const Write& write) {
  static_assert(std::endian::native == std::endian::little, "rows are written as they lie in memory");
  for (std::size_t k = 0; k < tensors.size(); ++k)
    tensors[k].for_each_piece_of_mine([&](RowRange rows, const Buffer<float>& numbers) {
      write(places[k] + rows.begin * tensors[k].columns * kNumberBytes, numbers.data(),
            std::ssize(numbers) * kNumberBytes);
    });
}

// What lies between the tensors.
template <class Write>
void write_frame(const hdf5::WrittenBytes& frame, const Places& places,
                 const std::vector<StateTensor>& tensors, const Write& write) {
  std::vector<RowRange> kept = {{frame.size(), frame.size()}};
  for (std::size_t k = 0; k < tensors.size(); ++k)
    if (tensors[k].size() > 0) kept.push_back({places[k], places[k] + tensors[k].size() * kNumberBytes});
  std::ranges::sort(kept, {}, &RowRange::begin);
  auto at = kUserBlock;
  for (const auto& range : kept) {
    Buffer<char> bytes(static_cast<std::size_t>(range.begin - at));
    frame.read(at, std::ssize(bytes), bytes.data());
    write(at, bytes.data(), std::ssize(bytes));
    at = range.end;
  }
}

// The file that rank 0 has begun.
RangedFile join_file(const Communicator& world, const std::string& path) {
  try {
    return RangedFile::join(path);
  } catch (const UserError& error) {
    usage_error("{}: for rank {}, which writes a part of it (all nodes must share that folder)", error.what(),
                world.rank());
  }
}

}  // namespace

void write_sealed(const Communicator& world, const ArchiveFormat& format, const std::string& path,
                  const std::vector<StateTensor>& tensors, const WriteRest& rest) {
  RangedFile file;
  std::vector<RangeChecksum> checksums;
  const auto write = [&](std::int64_t at, const void* bytes, std::int64_t count) {
    file.write(at, bytes, count);
    add_checksum(at, static_cast<const char*>(bytes), count, checksums);
    note_movement();
  };
  Places places(tensors.size() + 1);
  agree(world, [&] {
    if (world.rank() != 0) return;
    file = RangedFile::create(path);
    const auto frame = frame_of(format, tensors, rest, places);
    file.resize(frame.size());
    write_frame(frame, places, tensors, write);
  });
  world.broadcast(std::span(places), 0, kLabel);
  agree(world, [&] {
    if (world.rank() != 0) file = join_file(world, path);
    write_tensors(tensors, places, write);
    file.sync();
  });
  const auto seal = seal_of(world, format, checksums, places.back());
  agree(world, [&] {
    if (world.rank() != 0) return;
    file.write(0, seal.data(), std::ssize(seal));
    file.sync();
  });
}

std::string sealed_bytes(const ArchiveFormat& format, const std::vector<StateTensor>& tensors,
                         const WriteRest& rest) {
  Places places;
  auto file = frame_of(format, tensors, rest, places);
  write_tensors(tensors, places,
                [&](std::int64_t at, const void* from, std::int64_t count) { file.write(at, count, from); });
  std::string bytes(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, file.size(), bytes.data());
  const auto crc = crc_of(bytes.data() + kUserBlock, file.size() - kUserBlock);
  return bytes.replace(0, kUserBlock, seal_of(format, file.size(), crc));
}

}  // namespace espalier
