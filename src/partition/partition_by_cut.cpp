// Owners beside a vertex cut: a vertex is with the block row that holds most entries of its row, of
// these the first; one without entries with v mod the number of them.
#include <numeric>

#include "espalier/graph/row_range.hpp"
#include "espalier/partition/edge_parts.hpp"
#include "partition_by.hpp"

namespace espalier {

Buffer<std::uint16_t> partition_by_cut(const VertexPartitionTask& task) {
  const auto mine = task.mine();
  const auto sizes = task.read_row_sizes(mine.begin, mine.end);
  const auto counts =
      task.world.all_gather(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}), "order");
  auto first = std::accumulate(counts.begin(), counts.begin() + task.world.rank(), std::int64_t{0});
  EdgePartsReader reader(task.world, task.by->path, task.by->info);
  const auto block_rows = fold_parts(task.by->info.entries, task.clusters);
  std::vector<std::int64_t> entries(static_cast<std::size_t>(task.clusters), 0);  // of a row
  Buffer<std::uint16_t> owners;
  const auto read = [&](std::int64_t begin, std::int64_t end) {
    const auto some = std::span(sizes).subspan(begin - mine.begin, end - begin);
    const auto last = std::accumulate(some.begin(), some.end(), first);
    const auto parts = reader.read(first, last);
    first = last;
    auto from = parts.begin();
    for (auto v = begin; v < end; ++v) {
      const std::span row(from, some[v - begin]);
      auto most = static_cast<int>(v % task.clusters);
      for (const auto part : row) {
        const int at = block_rows[part];
        if (++entries[at] > entries[most] || (entries[at] == entries[most] && at < most)) most = at;
      }
      for (const auto part : row) entries[block_rows[part]] = 0;
      owners.push_back(static_cast<std::uint16_t>(most));
      from += std::ssize(row);
    }
  };
  in_row_parts(task.world, task.nodes, read, 1 + task.by->info.edges() / task.nodes);
  reader.check();
  return owners;
}

}  // namespace espalier
