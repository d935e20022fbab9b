// The user block of a checkpoint or a weights.h5: what the file is, its length, and CRC-32 of all
// that follows. Ranks take checksums of ranges of their own, in any order; what they come to does
// not depend on how the file was cut.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "espalier/base/ranged_file.hpp"
#include "espalier/comm/communicator.hpp"

namespace espalier {

inline constexpr std::int64_t kUserBlock = 512;

/// CRC-32 of bytes [begin, end) of a file.
struct RangeChecksum {
  std::int64_t begin = 0, end = 0;
  std::uint32_t crc = 0;
};

/// Adds that of bytes[count], which are those of the file from `begin` on; to the last range, where
/// that ends there.
void add_checksum(std::int64_t begin, const void* bytes, std::int64_t count,
                  std::vector<RangeChecksum>& checksums);

/// Collective. CRC-32 of bytes [kUserBlock, size): the ranges of all ranks together are those
/// bytes, each once.
std::uint32_t combine(const Communicator& world, const std::vector<RangeChecksum>& mine, std::int64_t size);

/// The user block of a file of `size` bytes, kUserBlock long. `title` says what it is, and which
/// version of that.
std::string seal_of(const std::string& title, std::int64_t size, std::uint32_t crc);

inline constexpr const char* kCheckpointTitle = "espalier-checkpoint 1";

/// Collective: each rank reads a part. Throws UserError(kInput) on every rank, naming `path` and
/// the damage, for a file that is not, or no longer, what its user block says.
void check_seal(const Communicator& world, const std::string& path);

}  // namespace espalier
