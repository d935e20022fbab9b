// Rows cut into pieces cover their entries once, in order; sums of many lists at once equal those of the CPU, list by
// list.
// ranks: 1
#include "espalier/sparse/sum_rows.hpp"

#include "sparse/device_rows.hpp"

namespace espalier {
namespace {

class DeviceSumRows : public CudaTest {};

template <class Index>
struct WeightedRow {
  const Index* indices;
  const float* values;
  std::int64_t size;
};

template <class Index>
SparseSum<Index> sum_on_host(const Csr<Index>& matrix, const RowLists& lists, std::int64_t list,
                             const EntryWeight& weight) {
  std::vector<WeightedRow<Index>> rows;
  for (auto r = lists.offsets[static_cast<std::size_t>(list)];
       r < lists.offsets[static_cast<std::size_t>(list) + 1]; ++r) {
    const auto view = row_view(matrix, lists.rows[static_cast<std::size_t>(r)]);
    rows.push_back({view.indices, view.values, view.size});
  }
  SparseSum<Index> sum;
  sum_rows(
      std::span<const WeightedRow<Index>>(rows), matrix.columns,
      [&](const WeightedRow<Index>& row, std::int64_t k) {
        return weight(row.values == nullptr ? nullptr : row.values + k);
      },
      sum);
  return sum;
}

template <class Index>
void expect_sums(const Cuda& gpu, const Csr<Index>& matrix, const RowLists& lists, const EntryWeight& weight,
                 std::int64_t first, std::int64_t last) {
  const auto device = to_gpu(gpu, matrix);
  const auto pieces = lists.cut(gpu, device);
  DeviceSums<Index> sums;
  sum_rows(gpu, device, pieces, first, last, weight, sums);
  ASSERT_EQ(sums.lists(), last - first);
  const auto offsets = download(gpu, sums.device_offsets);
  EXPECT_TRUE(std::ranges::equal(offsets, sums.offsets));
  const auto columns = download(gpu, sums.columns);
  const auto totals = download(gpu, sums.sums);
  for (auto list = first; list < last; ++list) {
    const auto expected = sum_on_host(matrix, lists, list, weight);
    const auto begin = sums.offsets[static_cast<std::size_t>(list - first)],
               end = sums.offsets[static_cast<std::size_t>(list - first) + 1];
    EXPECT_TRUE(std::ranges::equal(std::span(columns).subspan(begin, end - begin), expected.columns)) << list;
    EXPECT_TRUE(std::ranges::equal(std::span(totals).subspan(begin, end - begin), expected.sums)) << list;
  }
}

template <class Index>
void expect_all_sums(const Cuda& gpu) {
  for (const std::int64_t n : {5, 33, 1023, 1024, 1025, 2500})
    for (const bool weighted : {false, true}) {
      const auto matrix = random_graph<Index>(n, 9, weighted, 3);
      const auto lists = awkward_lists(n);
      for (const EntryWeight weight :
           {EntryWeight{}, EntryWeight{.skip_zeros = true}, EntryWeight{.squared = true, .shift = 20}}) {
        expect_sums(gpu, matrix, lists, weight, 0, lists.groups());
        expect_sums(gpu, matrix, lists, weight, 5, 7);
        expect_sums(gpu, matrix, lists, weight, 2, 3);
        expect_sums(gpu, matrix, lists, weight, 3, 3);
      }
    }
}

TEST_F(DeviceSumRows, EqualTheCpus) {
  expect_all_sums<std::int32_t>(gpu());
  expect_all_sums<std::int64_t>(gpu());
}

TEST_F(DeviceSumRows, PiecesCoverTheRowsInOrder) {
  const std::int64_t n = 2 * kPieceEntries + 1;
  const auto matrix = random_graph<std::int32_t>(n, 9, false, 5);
  const auto lists = awkward_lists(n);
  const auto cut = lists.cut(gpu(), to_gpu(gpu(), matrix));
  const auto pieces = download(gpu(), cut.pieces);
  const auto of_row = download(gpu(), cut.of_row);
  ASSERT_EQ(cut.rows(), std::ssize(lists.rows));
  ASSERT_EQ(cut.count(), std::ssize(pieces));
  for (std::int64_t g = 0; g < lists.groups(); ++g)
    for (auto r = lists.offsets[static_cast<std::size_t>(g)];
         r < lists.offsets[static_cast<std::size_t>(g) + 1]; ++r) {
      const auto row = lists.rows[static_cast<std::size_t>(r)];
      auto at = matrix.row_begin(row);
      for (auto k = of_row[static_cast<std::size_t>(r)]; k < of_row[static_cast<std::size_t>(r) + 1]; ++k) {
        const auto& piece = pieces[static_cast<std::size_t>(k)];
        EXPECT_EQ(piece.begin, at);
        EXPECT_EQ(piece.group, g);
        EXPECT_TRUE(piece.size > 0 && piece.size <= kPieceEntries);
        at += piece.size;
      }
      EXPECT_EQ(at, matrix.row_end(row));
    }
}

TEST_F(DeviceSumRows, NoListsAtAll) {
  const auto matrix = random_graph<std::int32_t>(40, 3, true, 5);
  expect_sums(gpu(), matrix, RowLists{}, EntryWeight{}, 0, 0);
}

}  // namespace
}  // namespace espalier
