// Rows cut into pieces: the pieces cover the entries of every row once, in order, and know the
// row's segment.
// ranks: 1
#include "espalier/sparse/segmented_rows.hpp"

#include "cuda_test.hpp"
#include "sparse/row_lists.hpp"

namespace espalier {
namespace {

class DeviceRowPieces : public CudaTest {};

template <class Index>
void expect_pieces(const Cuda& gpu, std::int64_t n, const RowLists& lists, bool weighted) {
  const auto matrix = random_graph<Index>(n, 9, weighted, 5);
  const auto rows = cut(gpu, matrix, lists);
  const auto cut = cut_rows(gpu, rows.segments.rows.data(), rows.segments.offsets);
  const auto pieces = download(gpu, cut.pieces);
  const auto of_row = download(gpu, cut.of_row);
  ASSERT_EQ(cut.rows(), std::ssize(lists.rows));
  ASSERT_EQ(cut.segments(), lists.count());
  ASSERT_EQ(cut.count(), std::ssize(pieces));
  EXPECT_EQ(of_row.back(), std::ssize(pieces));
  for (std::int64_t s = 0; s < lists.count(); ++s) {
    EXPECT_EQ(cut.of_segment[s], of_row[lists.offsets[s]]);
    for (auto r = lists.offsets[s]; r < lists.offsets[s + 1]; ++r) {
      const auto row = lists.rows[r];
      auto at = matrix.row_begin(row);
      for (auto k = of_row[r]; k < of_row[r + 1]; ++k) {
        EXPECT_EQ(pieces[k].indices, rows.matrix.indices.data() + at);
        EXPECT_EQ(pieces[k].values, weighted ? rows.matrix.values.data() + at : nullptr);
        EXPECT_EQ(pieces[k].segment, s);
        EXPECT_TRUE(pieces[k].size > 0 && pieces[k].size <= kPieceEntries);
        at += pieces[k].size;
      }
      EXPECT_EQ(at, matrix.row_end(row));
    }
  }
}

TEST_F(DeviceRowPieces, CoverTheRowsInOrder) {
  for (const auto n : {kPieceEntries, kPieceEntries + 1, 2 * kPieceEntries + 1}) {
    expect_pieces<std::int32_t>(gpu(), n, awkward_lists(n), false);
    expect_pieces<std::int64_t>(gpu(), n, awkward_lists(n), true);
  }
}

TEST_F(DeviceRowPieces, OfNoSegmentsAreNone) {
  expect_pieces<std::int32_t>(gpu(), 40, RowLists{}, true);
}

}  // namespace
}  // namespace espalier
