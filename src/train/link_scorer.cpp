#include "link_scorer.hpp"

namespace espalier {

RowStore store_of_rows(const Grid& grid, const Ownership& blocks, ConstMatrixView<float> own,
                       std::string_view label) {
  Matrix<float> block(blocks.size(grid.row()), own.columns);
  block.data = grid.row_comm().all_gather_v(
      std::span(own.data, static_cast<std::size_t>(own.rows * own.columns)), label);
  return {grid, blocks, std::move(block)};
}

RowRange places_of(const Ownership& judges, int rank, std::int64_t rows, const RowRange& ids) {
  const auto first_from = [&](std::int64_t id) {
    std::int64_t low = 0, high = rows;
    while (low < high) {
      const auto middle = low + (high - low) / 2;
      const bool before = judges.vertex(rank, middle) < id;
      (before ? low : high) = before ? middle + 1 : middle;
    }
    return low;
  };
  return {first_from(ids.begin), first_from(ids.end)};
}

}  // namespace espalier
