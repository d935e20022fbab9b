// HDRF (Petroni et al. 2015): pair after pair, in the order of the rows, goes to the part p with
// the largest
//
//     g(u, p) + g(v, p) + 1.1 (most - |p|) / (1 + most - least)
//
// where g(u, p) = 2 - d(u) / (d(u) + d(v)) if p has u already, else 0, and d(u) is how many pairs
// of u were met. So of two ends that with more pairs is copied: a hub. On rank 0, which has the
// parts of each vertex; rows come to it some at a time.
#include <algorithm>
#include <vector>

#include "edge_cut_methods.hpp"
#include "partition_pattern.hpp"

namespace espalier {

namespace {

class PairStream {
 public:
  PairStream(std::int64_t nodes, int parts)
      : parts_of_(static_cast<std::size_t>(nodes)),
        met_(static_cast<std::size_t>(nodes), 0),
        pairs_(static_cast<std::size_t>(parts), 0) {}

  std::uint16_t place(std::int64_t u, std::int64_t v) {
    const auto du = static_cast<double>(++met_[u]), dv = static_cast<double>(++met_[v]);
    const auto [least, most] = std::ranges::minmax(pairs_);
    const double span = 1 + static_cast<double>(most - least);
    std::size_t best = 0;
    double highest = -1;
    for (std::size_t p = 0; p < pairs_.size(); ++p) {
      const double score = has(u, p) * (2 - du / (du + dv)) + has(v, p) * (2 - dv / (du + dv)) +
                           1.1 * static_cast<double>(most - pairs_[p]) / span;
      if (score > highest) best = p, highest = score;
    }
    ++pairs_[best];
    for (const auto end : {u, v})
      if (!has(end, best)) parts_of_[end].push_back(static_cast<std::uint16_t>(best));
    return static_cast<std::uint16_t>(best);
  }

 private:
  bool has(std::int64_t vertex, std::size_t part) const {
    return std::ranges::find(parts_of_[vertex], part) != parts_of_[vertex].end();
  }

  std::vector<std::vector<std::uint16_t>> parts_of_;  // [n]
  std::vector<std::int64_t> met_;                     // [n]
  std::vector<std::int64_t> pairs_;                   // [parts]
};

}  // namespace

Buffer<std::uint16_t> stream_pairs(const EdgeCutTask& task) {
  constexpr std::int64_t kEntries = std::int64_t{1} << 22;  // at a time, about
  const auto& world = task.world;
  const auto all = world.all_reduce(task.rows.entries(), Reduction::kSum, kCut);
  const auto pieces = std::min(task.nodes, 1 + all / kEntries);
  PairStream stream(world.rank() == 0 ? task.nodes : 0, task.parts);
  Buffer<std::uint16_t> parts(task.rows.indices.size());
  const auto first = task.mine().begin;
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    // The pairs {u, v}, u < v, of some rows v, which this rank has or has not.
    const auto range = even_range(task.nodes, pieces, piece);
    Buffer<Proposal> mine, placed;
    for (auto v = std::max(range.begin, first); v < std::min(range.end, task.mine().end); ++v)
      for (const auto u : task.rows.row_indices(v - first))
        if (u < v) mine.push_back({v, u, 0});
    auto pairs = gather<Proposal>(world, mine, kCut);
    for (auto& of : pairs) {
      of.part = stream.place(of.column, of.row);
      placed.push_back({of.column, of.row, of.part});
    }
    deliver(task, pairs,
            [&](const Proposal& of) { parts[entry_at(task.rows, of.row - first, of.column)] = of.part; });
    deliver(task, placed,
            [&](const Proposal& of) { parts[entry_at(task.rows, of.row - first, of.column)] = of.part; });
  }
  return parts;
}

}  // namespace espalier
