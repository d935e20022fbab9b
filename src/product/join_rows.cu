// Every entry by itself finds its place in the row: that in its piece, and what the other pieces
// have below it. Pieces have no id in common.
#include "join_rows.hpp"

#include <bit>

#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

template <class Id>
PiecedRows<Id, Cuda> join_rows(const Cuda& cuda, std::span<const RowView<Id>> pieces,
                               const std::int64_t* row_of, std::int64_t rows, bool values) {
  // 1. The pieces of each row together: begin[r] .. begin[r+1].
  const auto count = std::ssize(pieces);
  DeviceArray<std::uint64_t> keys(count), sorted_keys(count);
  DeviceArray<std::int64_t> numbers(count), order(count), begins(rows + 1);
  auto *const key = keys.data(), *const sorted = sorted_keys.data();
  auto *const number = numbers.data(), *const begin = begins.data();
  for_each(cuda, "number_pieces", count, [=] __device__(std::int64_t j) {
    key[j] = static_cast<std::uint64_t>(row_of[j]);
    number[j] = j;
  });
  sort_pairs(cuda, key, sorted, number, order.data(), count,
             std::max<int>(1, std::bit_width(static_cast<std::uint64_t>(rows))));
  for_each(cuda, "find_rows", rows + 1, [=] __device__(std::int64_t r) {
    begin[r] = count_below(sorted, count, static_cast<std::uint64_t>(r));
  });

  // 2. Where the entries of each are, one piece after another: only of rows of several.
  DeviceArray<RowView<Id>> by_row(count);
  DeviceArray<std::int64_t> sizes(count), offsets(count + 1);
  auto* const piece = by_row.data();
  auto *const size = sizes.data(), *const offset = offsets.data();
  const auto* const from = pieces.data();
  const auto* const place = order.data();
  for_each(cuda, "take_pieces", count, [=] __device__(std::int64_t j) {
    const auto r = sorted[j];
    piece[j] = from[place[j]];
    size[j] = begin[r + 1] - begin[r] > 1 ? piece[j].size : 0;
  });
  exclusive_sum(cuda, size, offset, count);
  const auto entries = download(cuda, offset + count, 1)[0];
  PiecedRows<Id, Cuda> all;
  all.joined.ids.resize(entries);
  all.joined.values.resize(values ? entries : 0);

  // 3. Their entries, and views of rows.
  auto* const ids = all.joined.ids.data();
  auto* const numbers_beside = values ? all.joined.values.data() : nullptr;
  for_each(cuda, "join_entries", entries, [=] __device__(std::int64_t e) {
    const auto mine = segment_of(offset, count, e), k = e - offset[mine];
    const auto first = begin[sorted[mine]], last = begin[sorted[mine] + 1];
    const auto id = piece[mine].indices[k];
    auto to = offset[first] + k;
    for (auto j = first; j < last; ++j)
      if (j != mine) to += count_below(piece[j].indices, piece[j].size, id);
    ids[to] = id;
    if (numbers_beside != nullptr) numbers_beside[to] = piece[mine].values[k];
  });
  all.rows.resize(rows);
  all.joined.offsets.resize(rows + 1);
  auto* const to = all.rows.data();
  auto* const ends = all.joined.offsets.data();
  const Beside<const float> beside(values, all.joined.values);
  for_each(cuda, "view_joined", rows + 1, [=] __device__(std::int64_t r) {
    const auto at = offset[begin[r]];
    ends[r] = at;
    if (r == rows) return;
    to[r] = begin[r + 1] - begin[r] == 1 ? piece[begin[r]]
                                         : RowView<Id>{ids + at, beside + at, offset[begin[r + 1]] - at};
  });
  return all;
}

template PiecedRows<std::int32_t, Cuda> join_rows(const Cuda&, std::span<const RowView<std::int32_t>>,
                                                  const std::int64_t*, std::int64_t, bool);
template PiecedRows<std::int64_t, Cuda> join_rows(const Cuda&, std::span<const RowView<std::int64_t>>,
                                                  const std::int64_t*, std::int64_t, bool);

}  // namespace espalier
