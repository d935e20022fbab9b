// The file of parts of edges (edge_parts.hpp says what is in it), read where a job begins.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/comm/communicator.hpp"

namespace espalier {

class ArchiveReader;
namespace hdf5 {
struct Dataset;
}

struct EdgePartsInfo {
  std::string method;                    ///< how they were made
  std::optional<std::uint64_t> pattern;  ///< digest of the graph's edges, where known
  std::vector<std::int64_t> entries;     ///< [parts] of /graph/indices

  int parts() const { return static_cast<int>(entries.size()); }
  std::int64_t edges() const;
};

/// A file of them.
struct EdgeCut {
  std::string path;
  EdgePartsInfo info;
};

/// Collective. What a file says of itself. UserError(kInput) on every rank for one that is none.
EdgePartsInfo read_edge_parts_info(const Communicator& comm, const std::string& path);

/// Reads the parts, range by range: all entries once, by all ranks of `comm` together.
class EdgePartsReader {
 public:
  /// Collective. `comm` must stay.
  EdgePartsReader(const Communicator& comm, const std::string& path, EdgePartsInfo info);

  const EdgePartsInfo& info() const { return info_; }
  /// Collective; every rank its own range (may be empty). UserError(kInput) where it cannot be read
  /// or an entry is in no part that there is.
  Buffer<std::uint16_t> read(std::int64_t begin, std::int64_t end);
  /// Collective, when all was read. UserError(kInput) where it is not what was written.
  void check() const;

 private:
  const Communicator& comm_;
  EdgePartsInfo info_;
  std::shared_ptr<ArchiveReader> archive_;
  std::shared_ptr<hdf5::Dataset> part_;
  std::uint64_t digest_ = 0;
};

}  // namespace espalier
