// The entries of many groups' rows in their columns equal what the CPU's selection meets, row by row and in order.
// ranks: 1
#include "espalier/sparse/select_columns.hpp"

#include "sparse/device_rows.hpp"

namespace espalier {
namespace {

class DeviceSelectColumns : public CudaTest {};

// The columns of each group: none, all, or some.
template <class Index>
struct Columns {
  Buffer<Index> ids;
  std::vector<std::int64_t> offsets = {0};
};

template <class Index>
Columns<Index> some_columns(std::int64_t groups, std::int64_t n) {
  Columns<Index> columns;
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::int64_t one_in = g % 4 == 0 ? n + 1 : g % 4 == 1 ? 1 : 1 + g;
    for (std::int64_t v = 0; v < n; ++v)
      if ((v + 1) % one_in == 0) columns.ids.push_back(static_cast<Index>(v));
    columns.offsets.push_back(std::ssize(columns.ids));
  }
  return columns;
}

template <class Index>
void expect_row(const RowView<Index>& row, std::span<const Index> columns,
                std::span<const std::int32_t> places, std::span<const float> values) {
  ColumnSelection<Index> selection;
  selection.choose(columns);
  std::size_t met = 0;
  selection.meet(row, [&](std::int64_t c, std::int64_t k) {
    ASSERT_LT(met, places.size());
    EXPECT_EQ(places[met], c);
    if (row.values != nullptr) EXPECT_EQ(values[met], row.values[k]);
    ++met;
  });
  EXPECT_EQ(met, places.size());
}

template <class Index>
void expect_selection(const Cuda& gpu, const Csr<Index>& matrix, const RowLists& lists, std::int64_t budget) {
  const auto device = to_gpu(gpu, matrix);
  const auto columns = some_columns<Index>(lists.groups(), matrix.columns);
  const auto ids = upload(gpu, columns.ids);
  DeviceArray<std::int64_t> offsets;
  upload(gpu, std::span<const std::int64_t>(columns.offsets), offsets);
  SelectedEntries selected;
  select_columns(gpu, device, lists.cut(gpu, device), ids.data(), columns.offsets, offsets.data(), selected,
                 budget);
  const auto begins = download(gpu, selected.offsets);
  const auto places = download(gpu, selected.places);
  const auto values = download(gpu, selected.values);
  ASSERT_EQ(begins.size(), lists.rows.size() + 1);
  ASSERT_EQ(begins.back(), std::ssize(places));
  ASSERT_EQ(values.size(), matrix.has_values() ? places.size() : 0);
  for (std::size_t g = 0; g + 1 < lists.offsets.size(); ++g)
    for (auto r = static_cast<std::size_t>(lists.offsets[g]);
         r < static_cast<std::size_t>(lists.offsets[g + 1]); ++r) {
      const auto from = static_cast<std::size_t>(begins[r]),
                 size = static_cast<std::size_t>(begins[r + 1]) - from;
      expect_row(
          row_view(matrix, lists.rows[r]),
          std::span<const Index>(columns.ids)
              .subspan(static_cast<std::size_t>(columns.offsets[g]),
                       static_cast<std::size_t>(columns.offsets[g + 1] - columns.offsets[g])),
          std::span<const std::int32_t>(places).subspan(from, size),
          values.empty() ? std::span<const float>() : std::span<const float>(values).subspan(from, size));
    }
}

template <class Index>
void expect_selections(const Cuda& gpu) {
  for (const std::int64_t n : {5, 32, 33, 700, 1100})
    for (const bool weighted : {false, true})
      for (const std::int64_t budget : {0, 1, 600})
        expect_selection(gpu, random_graph<Index>(n, 9, weighted, 4), awkward_lists(n), budget);
}

TEST_F(DeviceSelectColumns, EqualTheCpus) {
  expect_selections<std::int32_t>(gpu());
  expect_selections<std::int64_t>(gpu());
}

TEST_F(DeviceSelectColumns, NoGroupsAtAll) {
  expect_selection(gpu(), random_graph<std::int32_t>(40, 3, true, 5), RowLists{}, 0);
}

}  // namespace
}  // namespace espalier
