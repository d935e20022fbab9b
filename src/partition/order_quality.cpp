#include "espalier/partition/order_quality.hpp"

#include <algorithm>

namespace espalier {

namespace {

constexpr std::int64_t kEdgesPerPiece = std::int64_t{1} << 24;

// What the edges say of the cuts into one number of parts.
class Count {
 public:
  Count(const ClusterContents& contents, int parts) : cuts_(cut_order(contents, parts)) {
    for (int cluster = 0; cluster < std::ssize(contents.weights); ++cluster)
      part_of_.push_back(cuts_.owner(cluster));
    seen_in_.assign(static_cast<std::size_t>(parts), -1);
  }

  void add_row(std::int64_t v, std::span<const std::int64_t> row, std::span<const std::uint16_t> cluster) {
    const auto own = part_of_[cluster[v]];
    seen_in_[own] = v;
    ++copies_;
    for (const auto u : row) {
      const auto part = part_of_[cluster[u]];
      cut_ += part != own;
      copies_ += seen_in_[part] != v;
      seen_in_[part] = v;
    }
  }

  std::array<std::int64_t, 2> sums() const { return {cut_, copies_}; }
  const RowPartition& cuts() const { return cuts_; }

 private:
  RowPartition cuts_;
  std::vector<int> part_of_;           // [clusters]
  std::vector<std::int64_t> seen_in_;  // [parts] the last row with a vertex of the part
  std::int64_t cut_ = 0, copies_ = 0;
};

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

std::vector<PartsQuality> quality_of(const OrderTask& task, std::span<const std::uint16_t> mine,
                                     const ClusterContents& contents, std::span<const int> parts) {
  const auto cluster = task.world.all_gather_v(mine, "order");
  std::vector<Count> counts;
  for (const int p : parts) counts.emplace_back(contents, p);
  const auto pieces = 1 + task.edges / task.world.size() / kEdgesPerPiece;
  std::int64_t loops = 0;
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    const auto range = even_range(task.mine().size(), pieces, piece);
    const auto first = task.mine().begin + range.begin;
    const auto rows = task.read_rows(first, task.mine().begin + range.end);
    loops += loops_in(rows, first);
    for (auto& count : counts)
      for (std::int64_t i = 0; i < rows.rows; ++i) count.add_row(first + i, rows.row_indices(i), cluster);
  }
  const auto edges = task.edges - task.world.all_reduce(loops, Reduction::kSum, "order");
  std::vector<PartsQuality> found;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    auto sums = counts[k].sums();
    task.world.all_reduce(std::span<std::int64_t>(sums), Reduction::kSum, "order");
    found.push_back({parts[k], edges == 0 ? 0 : static_cast<double>(sums[0]) / static_cast<double>(edges),
                     static_cast<double>(sums[1]) / static_cast<double>(task.nodes),
                     balances_of(contents.weights, counts[k].cuts()),
                     type_balances_of(contents, counts[k].cuts())});
  }
  return found;
}

}  // namespace espalier
