// How good the parts of an order are: edges cut, rows read by other parts, balance.
#include "espalier/partition/partition_methods.hpp"

#include <algorithm>

#include "espalier/base/group_stably.hpp"

namespace espalier {

namespace {

constexpr std::int64_t kEdgesPerPiece = std::int64_t{1} << 22;

// What the edges say of the cuts into one number of parts.
struct Count {
  Count(const ClusterContents& contents, int parts)
      : cuts(cut_order(contents, parts)), part_of(cuts.owners()) {}

  void add_row(std::int64_t v, std::span<const std::int64_t> row, std::span<const std::uint16_t> cluster) {
    for (const auto u : row) cut += part_of[cluster[u]] != part_of[cluster[v]];
  }

  RowPartition cuts;
  std::vector<std::int32_t> part_of;  // [clusters]
  std::int64_t cut = 0;
};

// Of each of my vertices a bit for every part, of every number of parts: does it want the vertex?
class Wanted {
 public:
  Wanted(std::span<const Count> counts, int clusters, std::int64_t vertices) {
    begins_ = {0};
    for (const auto& count : counts) begins_.push_back(begins_.back() + count.cuts.parts());
    words_ = begins_.back() / 64 + 1;
    bits_.resize(vertices * words_, 0);
    parts_of_.resize(clusters * words_, 0);
    for (int cluster = 0; cluster < clusters; ++cluster)
      for (std::size_t k = 0; k < counts.size(); ++k) {
        const auto bit = begins_[k] + counts[k].part_of[cluster];
        parts_of_[cluster * words_ + bit / 64] |= std::uint64_t{1} << bit % 64;
      }
  }

  // The parts that have this cluster do.
  void add(std::int64_t vertex, std::int64_t cluster) {
    for (std::int64_t word = 0; word < words_; ++word)
      bits_[vertex * words_ + word] |= parts_of_[cluster * words_ + word];
  }

  // Over the `k`-th number of parts, how many want a vertex, added over my vertices.
  std::int64_t copies(std::size_t k) const {
    std::int64_t copies = 0;
    for (std::size_t at = 0; at < bits_.size(); at += words_)
      for (auto bit = begins_[k]; bit < begins_[k + 1]; ++bit)
        copies += static_cast<std::int64_t>(bits_[at + bit / 64] >> bit % 64 & 1);
    return copies;
  }

 private:
  std::vector<std::int64_t> begins_;  // [numbers of parts + 1] of its bits
  std::int64_t words_ = 0;            // of a vertex
  std::vector<std::uint64_t> bits_, parts_of_;
};

struct Read {
  std::int64_t vertex, cluster;  // of the row that reads it
};

// Collective. Tells the ranks that have the vertices which clusters read them.
void add_reads(const VertexPartitionTask& task, const Csr<std::int64_t>& rows, std::int64_t first,
               std::span<const std::uint16_t> cluster, Wanted& wanted) {
  std::vector<Read> send;
  for (std::int64_t i = 0; i < rows.rows; ++i)
    for (const auto u : rows.row_indices(i))
      if (cluster[u] != cluster[first + i]) send.push_back({u, cluster[first + i]});
  const auto counts = group_stably(send, task.world.size(), [&](const Read& read) {
    return even_owner(task.nodes, task.world.size(), read.vertex);
  });
  for (const auto& read : task.world.all_to_all_v(std::span<const Read>(send), counts, "order").data)
    wanted.add(read.vertex - task.mine().begin, read.cluster);
}

std::int64_t loops_in(const Csr<std::int64_t>& rows, std::int64_t first) {
  std::int64_t loops = 0;
  for (std::int64_t i = 0; i < rows.rows; ++i)
    loops += std::ranges::binary_search(rows.row_indices(i), first + i);
  return loops;
}

}  // namespace

std::vector<int> shown_parts(int clusters) {
  std::vector<int> shown;
  for (int parts = 2; parts <= std::min(clusters, 64); parts *= 2) shown.push_back(parts);
  return shown;
}

std::vector<PartsQuality> quality_of(const VertexPartitionTask& task, std::span<const std::uint16_t> mine,
                                     const ClusterContents& contents, std::span<const int> parts) {
  const auto cluster = task.world.all_gather_v(mine, "order");
  std::vector<Count> counts;
  for (const int p : parts) counts.emplace_back(contents, p);
  Wanted wanted(counts, static_cast<int>(contents.weights.size()), task.mine().size());
  for (std::size_t i = 0; i < mine.size(); ++i) wanted.add(static_cast<std::int64_t>(i), mine[i]);
  const auto pieces = 1 + task.edges / task.world.size() / kEdgesPerPiece;
  std::int64_t edges = 0;  // of a typed graph fewer than task.edges: relations are merged
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    const auto range = even_range(task.mine().size(), pieces, piece);
    const auto first = task.mine().begin + range.begin;
    const auto rows = task.read_rows(first, task.mine().begin + range.end);
    edges += rows.entries() - loops_in(rows, first);
    for (auto& count : counts)
      for (std::int64_t i = 0; i < rows.rows; ++i) count.add_row(first + i, rows.row_indices(i), cluster);
    add_reads(task, rows, first, cluster, wanted);
  }
  edges = task.world.all_reduce(edges, Reduction::kSum, "order");
  std::vector<PartsQuality> found;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    std::array<std::int64_t, 2> sums = {counts[k].cut, wanted.copies(k)};
    task.world.all_reduce(std::span<std::int64_t>(sums), Reduction::kSum, "order");
    found.push_back({parts[k], edges == 0 ? 0 : static_cast<double>(sums[0]) / static_cast<double>(edges),
                     static_cast<double>(sums[1]) / static_cast<double>(task.nodes),
                     balances_of(contents, counts[k].cuts)});
  }
  return found;
}

}  // namespace espalier
