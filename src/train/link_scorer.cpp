#include "link_scorer.hpp"

#include <algorithm>
#include <ranges>

namespace espalier {

RowStore store_of_rows(const Grid& grid, const Ownership& blocks, ConstMatrixView<float> own,
                       std::string_view label) {
  Matrix<float> block(blocks.size(grid.row()), own.columns);
  block.data = grid.row_comm().all_gather_v(
      std::span(own.data, static_cast<std::size_t>(own.rows * own.columns)), label);
  return {grid, blocks, std::move(block)};
}

std::vector<float> score_each(const Cpu& cpu, const Communicator& comm, const RowStore& rows, Scorer& scores,
                              std::span<const LinkTriple> links, std::int64_t at_once,
                              const std::string& label) {
  const auto mine = std::ssize(links);
  const auto rounds = comm.all_reduce(count_batches(mine, at_once), Reduction::kMax, label);
  RowsOfVertices fetched(cpu, rows, label);
  std::vector<float> found;
  for (std::int64_t round = 0; round < rounds; ++round) {
    const auto from = std::min(round * at_once, mine), to = std::min(from + at_once, mine);
    std::vector<std::int64_t> ends;
    for (auto k = from; k < to; ++k) {
      ends.push_back(links[k].head);
      ends.push_back(links[k].tail);
    }
    fetched.fetch(std::move(ends));
    for (auto k = from; k < to; ++k) {
      const std::int32_t tail = fetched.place(links[k].tail);
      found.push_back(scores(fetched.rows(), links[k].relation, fetched.place(links[k].head),
                             std::span(&tail, 1), false)[0]);
    }
  }
  return found;
}

RowRange places_of(const Ownership& evaluated_by, int rank, std::int64_t rows, const RowRange& ids) {
  const auto first_from = [&](std::int64_t id) -> std::int64_t {
    const auto all = std::views::iota(std::int64_t{0}, rows);
    const auto vertex_at = [&](std::int64_t place) { return evaluated_by.vertex(rank, place); };
    return std::ranges::lower_bound(all, id, {}, vertex_at) - all.begin();
  };
  return {first_from(ids.begin), first_from(ids.end)};
}

}  // namespace espalier
