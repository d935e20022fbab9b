// Reading sparse features, rows of pairs (dense/paired_rows.hpp).

#include <algorithm>
#include <cmath>

#include "espalier/base/row_range.hpp"
#include "espalier/dense/paired_rows.hpp"
#include "open_graph_file.hpp"

namespace espalier {

namespace {

// Those of a type.
struct Sparse {
  Sparse(const OpenGraphFile& h, int type)
      : begins(h.at(Column::kSparseBegins, type)),
        columns(h.at(Column::kSparseColumns, type)),
        values(h.at(Column::kSparseValues, type)),
        rows(begins.rows() - 1) {}

  const hdf5::Dataset &begins, &columns, &values;
  std::int64_t rows;
};

// Columns ascend in a row and are below `columns`.
void check_columns(const OpenGraphFile& h, const Sparse& of, std::int64_t begin,
                   std::span<const std::int64_t> starts, std::int64_t columns,
                   std::span<const std::int64_t> read) {
  for (std::size_t row = 0; row + 1 < starts.size(); ++row) {
    std::int64_t previous = -1;
    for (auto e = starts[row] - starts[0]; e < starts[row + 1] - starts[0]; ++e) {
      if (read[e] < 0 || read[e] >= columns)
        fail(h, "{}: row {} names column {}, but there are {}", of.columns.name,
             begin + static_cast<std::int64_t>(row), read[e], columns);
      if (read[e] <= previous)
        fail(h, "{}: the columns of row {} are not strictly ascending ({} after {})", of.columns.name,
             begin + static_cast<std::int64_t>(row), read[e], previous);
      previous = read[e];
    }
  }
}

}  // namespace

void find_pairs(OpenGraphFile& h, int type) {
  const Sparse of(h, type);
  if (!of.begins.exists()) return;
  auto& info = h.info.types[type];
  std::int64_t longest = 1;
  in_row_parts(h.comm, of.rows, [&](std::int64_t begin, std::int64_t end) {
    const auto starts =
        read_starts(h, of.begins, {begin, end}, of.rows, of.columns.rows(), of.columns.name, false);
    for (std::size_t i = 1; i < starts.size(); ++i) longest = std::max(longest, starts[i] - starts[i - 1]);
  });
  info.pairs = h.comm.all_reduce(longest, Reduction::kMax, "graph file");
}

Matrix<float> read_pairs(OpenGraphFile& h, int type, std::int64_t begin, std::int64_t end) {
  const Sparse of(h, type);
  const auto& info = h.info.types[type];
  const auto starts =
      read_starts(h, of.begins, {begin, end}, of.rows, of.columns.rows(), of.columns.name, false);
  const hdf5::Slab slab{starts.front(), starts.back(), 1};
  const auto columns = read_checked<std::int64_t>(
      h, of.columns, slab,
      [&](std::span<const std::int64_t> read) { check_columns(h, of, begin, starts, info.features, read); });
  const auto check_finite = [&](std::span<const float> piece, std::int64_t first) {
    for (std::size_t e = 0; e < piece.size(); ++e)
      if (!std::isfinite(piece[e]))
        fail(h, "{}: entry {} is not a finite number", of.values.name,
             slab.begin + first + static_cast<std::int64_t>(e));
  };
  const auto values = read_checked<float>(h, of.values, slab, InPieces{check_finite});
  Matrix<float> rows(end - begin, 2 * info.pairs);
  std::ranges::fill(rows.data, 0.0f);
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    float* pair = rows.row(row);
    for (auto e = starts[row] - slab.begin; e < starts[row + 1] - slab.begin; ++e, pair += 2) {
      pair[0] = static_cast<float>(columns[e]);
      pair[1] = values[e];
    }
  }
  return rows;
}

}  // namespace espalier
