// A fanout for each relation, on a GPU: rows are cut into their parts, all parts are drawn from at
// once, and the picks of a row's parts stand together again.
#include "node_wise.hpp"

#include <limits>

#include "each_entry.hpp"
#include "espalier/base/device_algorithms.hpp"

namespace espalier {

namespace {

// The first place of [begin, end) whose column is `bound` or more.
template <class Index>
__device__ std::int64_t place_of_column(const Index* columns, std::int64_t begin, std::int64_t end,
                                        std::int64_t bound) {
  while (begin < end) {
    const auto middle = begin + (end - begin) / 2;
    if (static_cast<std::int64_t>(columns[middle]) < bound)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

// Calls use(relation, begin, end) for each part of a row; once if it has at most `uncut` entries.
template <class Index, class Use>
__device__ void for_each_part(const ColumnsOf& columns, const RowView<Index>& row, std::int64_t uncut,
                              const Use& use) {
  if (row.size > 0 && row.size <= uncut) return use(0, std::int64_t{0}, row.size);
  for (std::int64_t begin = 0; begin < row.size;) {
    const int relation = columns.relation(row.indices[begin]);
    const auto end = place_of_column(row.indices, begin + 1, row.size, columns.begins[relation + 1]);
    use(relation, begin, end);
    begin = end;
  }
}

// The parts of rows that are not empty, in order.
template <class Index>
struct RelationParts {
  DeviceArray<RowView<Index>> rows;  // [parts]
  DeviceArray<RowKey> keys;          // [parts] with the relation
  DeviceArray<std::int64_t> begins;  // [rows + 1] the parts of each row

  std::int64_t count() const { return static_cast<std::int64_t>(rows.size()); }
};

// A row of so few entries is taken whole whichever relations they are of.
template <class Index>
std::int64_t taken_whole(const RowDraw<Index, Cuda>& draw, const LayerDraw& layer) {
  return !draw.keeps_small_rows() ? 0
         : layer.least < 0        ? std::numeric_limits<std::int64_t>::max()
                                  : layer.least;
}

// Cuts rows [count]; those of at most `uncut` entries stay in one piece. The host waits once.
template <class Index>
void cut_by_relation(const Cuda& cuda, const ColumnsOf& columns, const RowView<Index>* rows,
                     const RowKey* keys, std::int64_t count, std::int64_t uncut,
                     RelationParts<Index>& parts) {
  DeviceArray<std::int64_t> counts(count);
  auto* const to = counts.data();
  for_each(cuda, "count_parts", count, [=] __device__(std::int64_t r) {
    std::int64_t of_row = 0;
    for_each_part(columns, rows[r], uncut, [&](int, std::int64_t, std::int64_t) { ++of_row; });
    to[r] = of_row;
  });
  parts.begins.resize(count + 1);
  exclusive_sum(cuda, counts.data(), parts.begins.data(), count);
  const auto total = download(cuda, parts.begins.data() + count, 1)[0];
  parts.rows.resize(total);
  parts.keys.resize(total);
  const auto* const begins = parts.begins.data();
  auto* const part_rows = parts.rows.data();
  auto* const part_keys = parts.keys.data();
  for_each(cuda, "cut_parts", count, [=] __device__(std::int64_t r) {
    auto at = begins[r];
    const auto row = rows[r];
    for_each_part(columns, row, uncut, [&](int relation, std::int64_t begin, std::int64_t end) {
      part_rows[at] = {row.indices + begin, row.values + begin, end - begin};
      part_keys[at++] = {keys[r].vertex, keys[r].batch, relation};
    });
  });
}

}  // namespace

template <class Index>
void draw_by_relation(const Cuda& cuda, const RowDraw<Index, Cuda>& draw, const LayerDraw& layer,
                      const ColumnsOf& columns, const RowView<Index>* rows, const RowKey* keys,
                      std::int64_t count, Entries<Index, Cuda>& out) {
  RelationParts<Index> parts;
  cut_by_relation(cuda, columns, rows, keys, count, taken_whole(draw, layer), parts);
  draw.draw(cuda, layer, parts.rows.data(), parts.keys.data(), parts.count(), out);
  DeviceArray<std::int64_t> offsets(count + 1);
  auto* const to = offsets.data();
  const auto *const begins = parts.begins.data(), *const of_parts = out.offsets.data();
  for_each(cuda, "rows_of_parts", count + 1, [=] __device__(std::int64_t r) { to[r] = of_parts[begins[r]]; });
  out.offsets = std::move(offsets);
}

template <class Index>
void read_columns(const Cuda& cuda, const ColumnsOf& columns, const DeviceArray<std::int64_t>& row_offsets,
                  const DeviceArray<Index>& picks, DeviceArray<Index>& read_vertices,
                  DeviceArray<std::uint8_t>& read_relations, DeviceArray<float>* means) {
  const auto entries = std::ssize(picks);
  read_vertices.resize(entries);
  read_relations.resize(entries);
  if (means != nullptr) means->resize(entries);
  const auto* const from = picks.data();
  const auto* const offsets = row_offsets.data();
  auto* const vertices = read_vertices.data();
  auto* const relations = read_relations.data();
  auto* const values = means == nullptr ? nullptr : means->data();
  for_each_entry(cuda, "read_columns", offsets, std::ssize(row_offsets) - 1, 0, entries,
                 [=] __device__(std::int64_t at, std::int64_t row) {
                   const int relation = columns.relation(from[at]);
                   vertices[at] = static_cast<Index>(from[at] + columns.shifts[relation]);
                   relations[at] = static_cast<std::uint8_t>(relation);
                   if (values == nullptr) return;
                   const auto first = place_of_column(from, offsets[row], at, columns.begins[relation]),
                              last = place_of_column(from, at + 1, offsets[row + 1],
                                                     columns.begins[relation + 1]);
                   values[at] = mean_value(last - first);
                 });
}

#define ESPALIER_INSTANTIATE(Index)                                                                      \
  template void draw_by_relation(const Cuda&, const RowDraw<Index, Cuda>&, const LayerDraw&,             \
                                 const ColumnsOf&, const RowView<Index>*, const RowKey*, std::int64_t,   \
                                 Entries<Index, Cuda>&);                                                 \
  template void read_columns(const Cuda&, const ColumnsOf&, const DeviceArray<std::int64_t>&,            \
                             const DeviceArray<Index>&, DeviceArray<Index>&, DeviceArray<std::uint8_t>&, \
                             DeviceArray<float>*);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
