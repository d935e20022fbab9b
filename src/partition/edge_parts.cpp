#include "espalier/partition/edge_parts.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "espalier/base/row_range.hpp"
#include "partition_pattern.hpp"
#include "proposals.hpp"

namespace espalier {

Csr<std::int64_t> undirected_rows(const Communicator& world, const GraphFile& file) {
  const auto& info = file.info();
  const auto read = [&](std::int64_t begin, std::int64_t end) {
    auto rows = file.read_rows<std::int64_t>(begin, end);
    rows.columns = info.nodes;
    if (!info.typed) return rows;
    std::int64_t kept = 0, from = 0;
    for (std::int64_t row = 0; row < rows.rows; ++row) {
      const auto first = rows.indices.begin() + from, last = rows.indices.begin() + rows.indptr[row + 1];
      for (auto column = first; column != last; ++column) *column = info.schema.vertex_of(*column);
      std::sort(first, last);
      const auto size = std::unique(first, last) - first;
      std::copy_n(first, size, rows.indices.begin() + kept);
      from = std::exchange(rows.indptr[row + 1], kept += size);
    }
    rows.indices.resize(kept);
    return rows;
  };
  return symmetric_rows({.world = world,
                         .nodes = info.nodes,
                         .edges = info.edges,
                         .clusters = 1,
                         .weights = {},
                         .read_rows = read});
}

std::span<const EdgeCutMethod> edge_cut_methods() {
  static constexpr EdgeCutMethod kMethods[] = {
      {"expansion", "our neighbourhood expansion: few copies, parts even in edges, and mostly in vertices",
       expand_evenly, true},
      {"dne", "DistributedNE with tau = 1.01 (Hanai et al. 2019)", expand_as_dne, true},
      {"adadne", "AdaDNE as GLISP has it; parts of small graphs with hubs can be very uneven",
       expand_as_adadne, true},
      {"hdrf", "HDRF (Petroni et al. 2015): one pass over the edges on one rank", stream_pairs},
  };
  return kMethods;
}

EdgeCutQuality quality_of(const EdgeCutTask& task, const Buffer<std::uint16_t>& parts) {
  std::vector<std::int64_t> vertices(static_cast<std::size_t>(task.parts), 0), entries(vertices);
  std::int64_t sums[] = {0, 0, 0};  // vertices with a pair, their copies, those of one part
  std::vector<std::uint16_t> of_row;
  for (std::int64_t v = 0; v < task.rows.rows; ++v) {
    parts_of_row(task.rows, parts, v, of_row);
    for (const auto part : of_row) ++vertices[part];
    sums[0] += !of_row.empty();
    sums[1] += std::ssize(of_row);
    sums[2] += of_row.size() == 1;
  }
  for (const auto part : parts) ++entries[part];
  for (auto* list : {&vertices, &entries}) task.world.all_reduce(std::span(*list), Reduction::kSum, kCut);
  task.world.all_reduce(std::span<std::int64_t>(sums), Reduction::kSum, kCut);
  if (sums[0] == 0) return {};
  const auto balance = [](const std::vector<std::int64_t>& of) {
    return static_cast<double>(std::ranges::max(of)) / static_cast<double>(std::ranges::min(of));
  };
  const auto all = static_cast<double>(sums[0]);
  return {static_cast<double>(sums[1]) / all, balance(vertices), balance(entries),
          static_cast<double>(sums[2]) / all};
}

}  // namespace espalier
