// A vertex cut: the edges of a graph in parts, which share vertices (GLISP, Zhu et al. 2024).
//
// The unit is the pair {u, v} of the symmetric pattern: both directions of an edge, and those of
// all relations between its ends, are in one part. The same parts for any number of ranks.
//
// The file (HDF5):
//
//   /       attributes format = "espalier-edge-parts", version = 1; method; parts: how many;
//           pattern: digest of the graph's edges, 16 hex digits
//   /part     uint8 [m] up to 256 parts, else uint16: the part of each entry of /graph/indices. A
//             loop is in that of its vertex's first pair, of a vertex without one in v mod parts
//   /entries  int64 [parts]: how many of them each part has
//
// Data sets have an attribute digest (file/content_digest.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "espalier/base/buffer.hpp"
#include "espalier/base/output_file.hpp"
#include "espalier/base/row_range.hpp"
#include "espalier/comm/communicator.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

class ArchiveReader;
namespace hdf5 {
struct Dataset;
}

inline constexpr std::int64_t kMostEdgeParts = 1 << 15;

/// What is cut. Every rank has an even range of the rows.
struct EdgeCutTask {
  const Communicator& world;
  std::int64_t nodes;
  const Csr<std::int64_t>& rows;  ///< of the symmetric pattern: columns ascending, no loops, both
                                  ///< directions of every pair
  int parts;                      ///< 1 .. kMostEdgeParts
  std::uint64_t seed = 0;

  RowRange mine() const { return even_range(nodes, world.size(), world.rank()); }
};

/// Collective. My even range of the rows of the symmetric pattern of a graph; `file` is open with
/// its relations apart. Whether edges were reversed for it is logged.
Csr<std::int64_t> undirected_rows(const Communicator& world, const GraphFile& file);

struct EdgeCutMethod {
  const char* name;
  const char* about;  ///< a line for `espalier help partition`
  /// Collective. The part of each entry of my rows.
  Buffer<std::uint16_t> (*parts)(const EdgeCutTask& task);
  bool uses_seed = false;
};

/// The first is taken where nobody asks for one.
std::span<const EdgeCutMethod> edge_cut_methods();

/// Collective. Gives parts other numbers, up to 1,024 of them: parts close in number share many
/// vertices, so that runs of them (fold_parts) do with few copies.
void number_parts(const EdgeCutTask& task, Buffer<std::uint16_t>& parts);

/// The block row, of `rows`, that takes each part: runs of consecutive parts, cut where they are
/// nearest to even in entries, a part at least for each row as long as there are parts. No row has
/// more than the mean and the entries of the largest part.
std::vector<int> fold_parts(std::span<const std::int64_t> entries, int rows);
/// The entries of the block row that has most of them then.
double largest_block_row(std::span<const std::int64_t> entries, int rows);

/// How good parts are. Vertices without a pair are left out.
struct EdgeCutQuality {
  double replication = 1;     ///< RF: in how many parts a vertex is, on average
  double vertex_balance = 1;  ///< VB: most vertices of a part over fewest; infinite where
                              ///< one has none
  double edge_balance = 1;    ///< EB: the same of pairs
  double interior = 0;        ///< fraction of the vertices that one part has alone
};

/// Collective. Of the parts of the entries of my rows.
EdgeCutQuality quality_of(const EdgeCutTask& task, const Buffer<std::uint16_t>& parts);

/// Collective. Writes the parts of a graph's edges; `file` is open with its relations apart.
/// UserError(kUsage) on every rank when the disk refuses.
void write_edge_parts(const EdgeCutTask& task, const Buffer<std::uint16_t>& parts, const GraphFile& file,
                      const std::string& method, const OutputFile& output);

// The file of parts of edges (edge_parts.hpp says what is in it), read where a job begins.

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
