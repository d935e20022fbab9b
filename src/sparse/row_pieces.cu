#include "espalier/sparse/row_pieces.hpp"

#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/base/search.hpp"

namespace espalier {

namespace {

template <class Index>
void count_pieces(const Cuda& cuda, const RowView<Index>* rows, std::int64_t count, std::int64_t* pieces) {
  for_each(cuda, "count_pieces", count, [=] __device__(std::int64_t r) {
    pieces[r] = (rows[r].size + kPieceEntries - 1) / kPieceEntries;
  });
}

template <class Index>
void write_pieces(const Cuda& cuda, const RowView<Index>* rows, std::int64_t count,
                  const std::int64_t* offsets, std::int64_t segments, const std::int64_t* of_row,
                  RowPiece<Index>* pieces) {
  for_each(cuda, "write_pieces", count, [=] __device__(std::int64_t r) {
    const auto row = rows[r];
    const auto segment = static_cast<std::int32_t>(segment_of(offsets, segments, r));
    std::int64_t begin = 0;
    for (auto k = of_row[r]; k < of_row[r + 1]; ++k, begin += kPieceEntries) {
      const auto left = row.size - begin;
      pieces[k] = {row.indices + begin, row.values + begin,
                   static_cast<std::int32_t>(left < kPieceEntries ? left : kPieceEntries), segment};
    }
  });
}

}  // namespace

void take_at(const Cuda& cuda, const std::int64_t* values, const std::int64_t* places, std::int64_t count,
             std::int64_t* out) {
  for_each(cuda, "take_at", count, [=] __device__(std::int64_t k) { out[k] = values[places[k]]; });
}

template <class Index>
RowPieces<Index> cut_rows(const Cuda& cuda, const RowView<Index>* rows,
                          const SharedList<std::int64_t, Cuda>& offsets) {
  const auto count = offsets.back(), segments = offsets.size() - 1;
  RowPieces<Index> cut;
  DeviceArray<std::int64_t> of_row(count), of_segment(segments + 1);
  cut.of_row.resize(count + 1);
  count_pieces(cuda, rows, count, of_row.data());
  exclusive_sum(cuda, of_row.data(), cut.of_row.data(), count);
  take_at(cuda, cut.of_row.data(), offsets.data(), segments + 1, of_segment.data());
  const auto on_host = download(cuda, of_segment);
  cut.of_segment.assign(on_host.begin(), on_host.end());
  cut.pieces.resize(cut.count());
  write_pieces(cuda, rows, count, offsets.data(), segments, cut.of_row.data(), cut.pieces.data());
  return cut;
}

template RowPieces<std::int32_t> cut_rows(const Cuda&, const RowView<std::int32_t>*,
                                          const SharedList<std::int64_t, Cuda>&);
template RowPieces<std::int64_t> cut_rows(const Cuda&, const RowView<std::int64_t>*,
                                          const SharedList<std::int64_t, Cuda>&);

}  // namespace espalier
