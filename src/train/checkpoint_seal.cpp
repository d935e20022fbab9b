#include "checkpoint_seal.hpp"

#include <zlib.h>

#include <algorithm>

#include "espalier/base/row_range.hpp"
#include "espalier/comm/agree.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kBlock = std::int64_t{4} << 20;

// Throws where the beginning of a file of `size` bytes is that of no checkpoint, or of one of
// another length.
void check_beginning(const std::string& beginning, std::int64_t size, const std::string& path) {
  if (std::ssize(beginning) < kUserBlock || !beginning.starts_with(kCheckpointTitle))
    input_error("{}: is no checkpoint of this program (its first bytes are not \"{}\")", path,
                kCheckpointTitle);
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

}  // namespace

void add_checksum(std::int64_t begin, const void* bytes, std::int64_t count,
                  std::vector<RangeChecksum>& checksums) {
  if (count == 0) return;
  const auto crc = crc32_z(crc32_z(0, nullptr, 0), static_cast<const Bytef*>(bytes), count);
  const bool follows = !checksums.empty() && checksums.back().end == begin;
  if (!follows) checksums.push_back({begin, begin, static_cast<std::uint32_t>(crc32_z(0, nullptr, 0))});
  auto& last = checksums.back();
  last.crc = static_cast<std::uint32_t>(crc32_combine(last.crc, crc, count));
  last.end += count;
}

std::uint32_t combine(const Communicator& world, const std::vector<RangeChecksum>& mine, std::int64_t size) {
  auto all = world.all_gather_v(std::span<const RangeChecksum>(mine), "checkpoint");
  std::ranges::sort(all, {}, &RangeChecksum::begin);
  uLong crc = crc32_z(0, nullptr, 0);
  auto end = kUserBlock;
  for (const auto& range : all) {
    ESPALIER_CHECK(range.begin == end, "bytes {} to {} of a checkpoint are nobody's or of two", end,
                   range.begin);
    crc = crc32_combine(crc, range.crc, range.end - range.begin);
    end = range.end;
  }
  ESPALIER_CHECK(end == size, "bytes {} to {} of a checkpoint are nobody's", end, size);
  return static_cast<std::uint32_t>(crc);
}

std::string seal_of(const std::string& title, std::int64_t size, std::uint32_t crc) {
  auto block = fmt::format("{}\nbytes {}\ncrc32 {:08x}\n", title, size, crc);
  block.resize(kUserBlock, '\0');
  return block;
}

void check_seal(const Communicator& world, const std::string& path) {
  RangedFile file;
  std::int64_t size = 0;
  std::string beginning;
  agree(world, [&] {
    file = RangedFile::open(path);
    if (world.rank() != 0) return;
    beginning.resize(kUserBlock);
    beginning.resize(static_cast<std::size_t>(file.read(0, beginning.data(), kUserBlock)));
    size = file.size();
    check_beginning(beginning, size, path);
  });
  world.broadcast(&size, 1, 0, "setup");
  std::vector<RangeChecksum> mine;
  agree(world, [&] {
    const auto range = even_range(size - kUserBlock, world.size(), world.rank());
    mine = checksums_of(file, {range.begin + kUserBlock, range.end + kUserBlock}, path);
  });
  const auto seal = seal_of(kCheckpointTitle, size, combine(world, mine, size));
  agree(world, [&] {
    if (world.rank() == 0 && beginning != seal)
      input_error("{}: is damaged: its checksum does not fit its bytes", path);
  });
}

}  // namespace espalier
