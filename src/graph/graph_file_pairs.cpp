// Reading sparse features, rows of pairs (dense/paired_rows.hpp).

#include <algorithm>
#include <cmath>

#include "checked_read.hpp"
#include "espalier/dense/paired_rows.hpp"
#include "espalier/graph/degrees.hpp"

namespace espalier {

namespace {

std::int64_t rows_of(const OpenType& open) {
  return open.sparse.indptr.rows() - 1;
}

// Collective. Where the rows [begin, end) of the type begin among all entries, and where the last
// one ends.
Buffer<std::int64_t> read_starts(OpenGraphFile& h, const OpenType& open, std::int64_t begin,
                                 std::int64_t end) {
  const auto& indptr = open.sparse.indptr;
  const auto total = open.sparse.indices.rows();
  return read_checked<std::int64_t>(
      h, indptr, {begin, end + 1, 1},
      [&](const auto& starts) {
        if (begin == 0 && starts[0] != 0) fail(h, "{} starts with {}, not with 0", indptr.name, starts[0]);
        if (end == rows_of(open) && starts.back() != total)
          fail(h, "{} ends with {}, but {} has {} entries", indptr.name, starts.back(),
               open.sparse.indices.name, total);
        for (std::size_t i = 0; i < starts.size(); ++i)
          if (starts[i] < 0 || starts[i] > total || (i > 0 && starts[i] < starts[i - 1]))
            fail(h, "{} is not ascending within [0, {}]: entry {} is {}", indptr.name, total,
                 begin + static_cast<std::int64_t>(i), starts[i]);
      },
      end < rows_of(open) || begin == end ? 1 : 0);
}

// Columns ascend in a row and are below `columns`.
void check_columns(const OpenGraphFile& h, const OpenType& open, std::int64_t begin,
                   std::span<const std::int64_t> starts, std::int64_t columns,
                   std::span<const std::int64_t> read) {
  for (std::size_t row = 0; row + 1 < starts.size(); ++row) {
    std::int64_t previous = -1;
    for (auto e = starts[row] - starts[0]; e < starts[row + 1] - starts[0]; ++e) {
      if (read[e] < 0 || read[e] >= columns)
        fail(h, "{}: row {} names column {}, but there are {}", open.sparse.indices.name,
             begin + static_cast<std::int64_t>(row), read[e], columns);
      if (read[e] <= previous)
        fail(h, "{}: the columns of row {} are not strictly ascending ({} after {})",
             open.sparse.indices.name, begin + static_cast<std::int64_t>(row), read[e], previous);
      previous = read[e];
    }
  }
}

}  // namespace

void find_pairs(OpenGraphFile& h, std::size_t type) {
  const auto& open = h.types[type];
  if (!open.sparse.exists()) return;
  auto& info = h.info.types[type];
  std::int64_t longest = 1;
  in_row_parts(h.comm, rows_of(open), [&](std::int64_t begin, std::int64_t end) {
    const auto starts = read_starts(h, open, begin, end);
    for (std::size_t i = 1; i < starts.size(); ++i) longest = std::max(longest, starts[i] - starts[i - 1]);
  });
  info.pairs = h.comm.all_reduce(longest, Reduction::kMax, "graph file");
}

Matrix<float> read_pairs(OpenGraphFile& h, std::size_t type, std::int64_t begin, std::int64_t end) {
  const auto& open = h.types[type];
  const auto& info = h.info.types[type];
  const auto starts = read_starts(h, open, begin, end);
  const hdf5::Slab slab{starts.front(), starts.back(), 1};
  const auto columns =
      read_checked<std::int64_t>(h, open.sparse.indices, slab, [&](std::span<const std::int64_t> read) {
        check_columns(h, open, begin, starts, info.features, read);
      });
  const auto check_finite = [&](std::span<const float> piece, std::int64_t first) {
    for (std::size_t e = 0; e < piece.size(); ++e)
      if (!std::isfinite(piece[e]))
        fail(h, "{}: entry {} is not a finite number", open.sparse.values.name,
             slab.begin + first + static_cast<std::int64_t>(e));
  };
  const auto values = read_checked<float>(h, open.sparse.values, slab, InPieces{check_finite});
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
