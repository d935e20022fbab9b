// How a pass over the whole graph (layerwise_pass.hpp) cuts the rows of a rank into chunks: by
// what they read, not by how many they are, so that the chunk of a graph's hubs is no larger
// than others.
#pragma once

#include <cstdint>
#include <functional>

#include "espalier/product/dist_csr.hpp"

namespace espalier {

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

}  // namespace espalier
