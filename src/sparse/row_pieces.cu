#include "espalier/sparse/row_pieces.hpp"

#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/sparse/group_of.hpp"

namespace espalier {

namespace {

void count_pieces(const Cuda& cuda, const std::int64_t* indptr, const std::int64_t* rows, std::int64_t count,
                  std::int64_t* pieces) {
  for_each(cuda, "count_pieces", count, [=] __device__(std::int64_t r) {
    const auto row = rows[r];
    pieces[r] = (indptr[row + 1] - indptr[row] + kPieceEntries - 1) / kPieceEntries;
  });
}

void write_pieces(const Cuda& cuda, const std::int64_t* indptr, const std::int64_t* rows, std::int64_t count,
                  const std::int64_t* offsets, std::int64_t groups, const std::int64_t* of_row,
                  RowPiece* pieces) {
  for_each(cuda, "write_pieces", count, [=] __device__(std::int64_t r) {
    auto begin = indptr[rows[r]];
    const auto end = indptr[rows[r] + 1];
    const auto group = static_cast<std::int32_t>(group_of(offsets, groups, r));
    for (auto k = of_row[r]; k < of_row[r + 1]; ++k, begin += kPieceEntries) {
      const auto left = end - begin;
      pieces[k] = {begin, static_cast<std::int32_t>(left < kPieceEntries ? left : kPieceEntries), group};
    }
  });
}

// out[g] = of_row[offsets[g]] for g <= groups.
void take_at_offsets(const Cuda& cuda, const std::int64_t* of_row, const std::int64_t* offsets,
                     std::int64_t groups, std::int64_t* out) {
  for_each(cuda, "take_at_offsets", groups + 1,
           [=] __device__(std::int64_t g) { out[g] = of_row[offsets[g]]; });
}

}  // namespace

template <class Index>
RowPieces cut_rows(const Cuda& cuda, const Csr<Index, Cuda>& matrix, const std::int64_t* rows,
                   std::int64_t count, const std::int64_t* offsets, std::int64_t groups) {
  RowPieces cut;
  DeviceArray<std::int64_t> of_row(static_cast<std::size_t>(count)),
      of_group(static_cast<std::size_t>(groups) + 1);
  cut.of_row.resize(static_cast<std::size_t>(count) + 1);
  count_pieces(cuda, matrix.indptr.data(), rows, count, of_row.data());
  exclusive_sum(cuda, of_row.data(), cut.of_row.data(), count);
  take_at_offsets(cuda, cut.of_row.data(), offsets, groups, of_group.data());
  const auto on_host = download(cuda, of_group);
  cut.of_group.assign(on_host.begin(), on_host.end());
  cut.pieces.resize(static_cast<std::size_t>(cut.count()));
  write_pieces(cuda, matrix.indptr.data(), rows, count, offsets, groups, cut.of_row.data(),
               cut.pieces.data());
  return cut;
}

#define ESPALIER_INSTANTIATE(Index)                                                                    \
  template RowPieces cut_rows(const Cuda&, const Csr<Index, Cuda>&, const std::int64_t*, std::int64_t, \
                              const std::int64_t*, std::int64_t);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
