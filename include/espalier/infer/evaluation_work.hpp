// A pass over the whole graph (layerwise_pass.hpp) before it is made: by which rule rows are cut
// into chunks, and what it will cost on a grid that need not exist.
// Rows that it fetches from other ranks: the distinct neighbours of every chunk that lie in another
// block row, counted in the matrix, or expected from its degrees; and what it holds.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "espalier/base/footprint.hpp"
#include "espalier/nn/network_shape.hpp"
#include "espalier/partition/held_types.hpp"
#include "espalier/partition/ownership.hpp"
#include "espalier/product/dist_csr.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

// How a pass over the whole graph (layerwise_pass.hpp) cuts the rows of a rank into chunks: by
// what they read, not by how many they are, so that the chunk of a graph's hubs is no larger
// than others.

/// What a chunk may read: a row for each entry, all of which may be distinct, and so many for each
/// of its own rows.
struct ChunkLimit {
  std::int64_t reads = 0;
  std::int64_t least_rows = 64;  ///< of a chunk, unless they read more than kFewReads
  std::int64_t of_a_row = 1;
  static constexpr std::int64_t kFewReads = std::int64_t{1} << 16;

  friend bool operator==(const ChunkLimit&, const ChunkLimit&) = default;
};

/// Where rows of `width` numbers, what finds them, and rows of `out` numbers that come of them are
/// to fit in so many bytes; of rows on disk what was read is there beside them.
inline ChunkLimit chunk_limit(std::int64_t width, std::int64_t out, std::int64_t chunk_bytes, bool on_disk) {
  const auto of_a_read = on_disk ? 8 * width + 96 : 4 * width + 64;
  return {.reads = chunk_bytes / of_a_read, .of_a_row = 1 + 4 * out / of_a_read};
}

/// The end of the chunk that begins with row `from` of `rows`; `entries(k)`: of row k.
template <class EntriesOf>
std::int64_t chunk_end(std::int64_t from, std::int64_t rows, const ChunkLimit& limit, EntriesOf entries) {
  std::int64_t reads = 0, end = from;
  for (; end < rows; ++end) {
    reads += limit.of_a_row + entries(end);
    const bool some = end - from >= limit.least_rows || (end > from && reads > ChunkLimit::kFewReads);
    if (reads > limit.reads && some) break;
  }
  return end;
}

/// How many entries each vertex's row has in a matrix on the grid, of those whose rows this rank
/// owns. The matrix must outlive it; of one on a GPU its copy on the host is asked.
class EntriesOfRows {
 public:
  template <class Index, class Space>
  explicit EntriesOfRows(const DistCsr<Index, Space>& a)
      : entries_([&a = a.on_host()](std::int64_t v) { return a.row_size(a.ownership.local(v)); }) {}

  std::int64_t operator()(std::int64_t vertex) const { return entries_(vertex); }

 private:
  std::function<std::int64_t(std::int64_t)> entries_;
};

struct EvaluationWork {
  std::int64_t chunks = 0;                 ///< of one rank, the most
  double remote_rows = 0;                  ///< rows that the chunks of a layer fetch,
                                           ///< over all ranks
  double most_remote_rows = 0;             ///< of one rank
  std::vector<double> table_shares = {1};  ///< of remote_rows, those of each table
  double largest_rows = 0;                 ///< of a chunk, the most
  double largest_input = 0;                ///< rows of the largest chunk's input
  double largest_entries = 0;              ///< of the largest chunk
};

/// Of one layer, on a grid whose block rows are those of `blocks`, in so many copies. `a`: all
/// rows; `columns`: what its columns are; `tables`: whose rows are fetched; fanouts: [relations],
/// those of 0 are left out, or empty.
template <class Index>
EvaluationWork count_evaluation(const Csr<Index>& a, const Ownership& blocks, int replication,
                                const ChunkLimit& limit, const ColumnsOf& columns = {},
                                const std::vector<HeldTypes>& tables = {HeldTypes()},
                                std::span<const std::int64_t> fanouts = {});

/// The same for n vertices and so many entries that lie anywhere, of which a row has as many as
/// `longest_row` at most.
EvaluationWork estimate_evaluation(double nodes, double entries, double longest_row, int rows,
                                   int replication, const ChunkLimit& limit);

/// What a rank evaluates.
struct EvaluatedRows {
  double block_rows = 0;  ///< vertices of its block row
  int replication = 1;
  double input_width = 0;      ///< numbers of the rows of an input vertex, and bytes as
  double input_row_bytes = 0;  ///< they are stored
  double id_bytes = 4;
  double pick_value_bytes = 0;  ///< of an entry of a chunk as it is sampled
  bool reads_disk = false;      ///< for its input
  bool spills = false;          ///< rows of hidden layers to a file (feature/spilled_rows.hpp)
  double kept = 0;              ///< bytes of the rows of the last layer that its sink keeps,
  double evaluating = 0;        ///< and what is held beside them when the last chunk is done
  bool reads_edges = false;     ///< features of its entries, with so many bytes and numbers each
  double edge_row_bytes = 0, edge_width = 0;
};

/// While all layers are computed and evaluated; `layers[l]`: the work of layer l + 1.
Footprint evaluation_footprint(const NetworkShape& network, const EvaluatedRows& of,
                               std::span<const EvaluationWork> layers);

/// How many of these vertices each rank of such a grid evaluates.
std::vector<double> count_evaluated(std::span<const std::int64_t> vertices, const Ownership& blocks,
                                    int replication);

}  // namespace espalier
