// Schedule `pull` on GPUs: every rank asks the owners in its process column for the distinct rows that its batches need,
// and applies the operation by itself.
//
//   keeper                                  owner (same process column)
//   distinct remote ids, by owner       ──► ids                            label/ids
//   row sizes, then rows                ◄── those rows, one after another  label/rows
//
// Parts are ranges of ids: ascending ids are grouped by owner. The host waits for the number of distinct ids of each
// part and for the entries of the rows.
#include <bit>

#include "device_schedules.hpp"
#include "fetch_rows.hpp"

namespace espalier {

namespace {

/// The different vertices of the keys, ascending.
struct DistinctVertices {
  DeviceArray<std::int64_t> ids;       // [count, at least]
  DeviceArray<std::int64_t> place_of;  // [keys] the place of each key's vertex in ids
  Buffer<std::int64_t> begin;          // [parts + 1] where the ids of each part begin; on the host
  std::int64_t own_entries = 0;        // of the rows of my block among them
};

/// *sum = the entries of the rows ids[begin[0] .. begin[1]) of my block; count: at least begin[1].
template <class Index>
void sum_own_entries(const Cuda& cuda, const std::int64_t* ids, std::int64_t count, const std::int64_t* begin,
                     const DeviceDistCsr<Index>& a, std::int64_t* sum) {
  if (count == 0) return fill_bytes(cuda, sum, 0, sizeof *sum);
  DeviceArray<std::int64_t> sizes(static_cast<std::size_t>(count));
  auto* const size = sizes.data();
  const auto local = rows_of(a.local);
  const auto first_row = a.host->first_row();
  for_each(cuda, "sizes_of_own_rows", count, [=] __device__(std::int64_t k) {
    size[k] = k >= begin[0] && k < begin[1] ? local[ids[k] - first_row].size : 0;
  });
  reduce_sum(cuda, size, count, sum);
}

template <class Index>
DistinctVertices find_distinct(const Cuda& cuda, const RowKey* keys, std::int64_t count,
                               const DeviceDistCsr<Index>& a) {
  const auto& partition = a.host->partition;
  const auto size = static_cast<std::size_t>(count);
  DeviceArray<std::uint64_t> vertices(size), sorted_vertices(size);
  DeviceArray<std::int64_t> places(size), order_of(size), heads(size), numbers(size + 1);
  DistinctVertices distinct;
  distinct.ids.resize(size);
  distinct.place_of.resize(size);
  auto *const vertex = vertices.data(), *const sorted = sorted_vertices.data();
  auto *const place = places.data(), *const order = order_of.data(), *const head = heads.data(),
              *const number = numbers.data(), *const id = distinct.ids.data(),
              *const place_of = distinct.place_of.data();
  for_each(cuda, "take_vertices", count, [=] __device__(std::int64_t k) {
    vertex[k] = static_cast<std::uint64_t>(keys[k].vertex);
    place[k] = k;
  });
  sort_pairs(cuda, vertex, sorted, place, order, count,
             std::max<int>(1, std::bit_width(static_cast<std::uint64_t>(partition.rows()))));
  for_each(cuda, "find_distinct", count,
           [=] __device__(std::int64_t j) { head[j] = j == 0 || sorted[j] != sorted[j - 1]; });
  exclusive_sum(cuda, head, number, count);
  for_each(cuda, "write_distinct", count, [=] __device__(std::int64_t j) {
    place_of[order[j]] = number[j + 1] - 1;
    if (head[j] != 0) id[number[j]] = static_cast<std::int64_t>(sorted[j]);
  });

  const auto offsets = offsets_of(cuda, partition);
  DeviceArray<std::int64_t> begins(offsets.size() + 1);  // and the entries
  const auto* const offset = offsets.data();
  auto* const begin = begins.data();
  for_each(cuda, "find_parts", partition.parts() + 1,
           [=] __device__(std::int64_t part) { begin[part] = count_below(id, number[count], offset[part]); });
  sum_own_entries(cuda, id, count, begin + a.host->part, a, begin + partition.parts() + 1);
  distinct.begin = download(cuda, begins);
  distinct.own_entries = distinct.begin.back();
  distinct.begin.pop_back();
  return distinct;
}

/// Which of the distinct vertices are mine: those at places begin .. begin + count.
struct Mine {
  std::int64_t begin, count;
  ESPALIER_HD bool has(std::int64_t place) const { return place >= begin && place < begin + count; }
  /// Of a vertex of others, its number among those.
  ESPALIER_HD std::int64_t number(std::int64_t place) const { return place < begin ? place : place - count; }
  /// The place of number r of others.
  ESPALIER_HD std::int64_t place(std::int64_t r) const { return r < begin ? r : r + count; }
};

template <class Index>
void fetch_distinct(const Cuda& cuda, const DeviceCommunicator& column, const DistinctVertices& distinct,
                    const Mine& mine, const DeviceDistCsr<Index>& a, const std::string& label,
                    DeviceRowEntries<Index>& fetched) {
  // 1. Ids to their owners.
  auto counts = counts_between(distinct.begin);
  counts[static_cast<std::size_t>(a.host->part)] = 0;
  const auto remote = begins_of(counts).back();
  DeviceArray<Index> ids(static_cast<std::size_t>(remote));
  auto* const id = ids.data();
  const auto* const from = distinct.ids.data();
  for_each(cuda, "take_remote_ids", remote,
           [=] __device__(std::int64_t r) { id[r] = static_cast<Index>(from[mine.place(r)]); });
  const auto asked_counts = column.host().exchange_counts(counts, label + "/ids");
  const auto asked = begins_of(asked_counts).back();
  DeviceArray<Index> asked_ids(static_cast<std::size_t>(asked));
  column.all_to_all_v(id, counts, asked_ids.data(), asked_counts, label + "/ids");

  // 2. Rows back.
  DeviceArray<RowView<Index>> rows(static_cast<std::size_t>(asked));
  DeviceArray<std::int64_t> sizes(static_cast<std::size_t>(asked)),
      offsets(static_cast<std::size_t>(asked) + 1);
  auto* const row = rows.data();
  auto* const size = sizes.data();
  const auto* const wanted = asked_ids.data();
  const auto local = rows_of(a.local);
  const auto first_row = a.host->first_row();
  for_each(cuda, "view_asked_rows", asked, [=] __device__(std::int64_t k) {
    row[k] = local[wanted[k] - first_row];
    size[k] = row[k].size;
  });
  exclusive_sum(cuda, size, offsets.data(), asked);
  RowExchange<Index> back(cuda, column, offsets.data(), asked_counts, counts, label + "/rows");
  const bool values = a.host->has_values;
  DeviceArray<Index> sent_indices(static_cast<std::size_t>(back.sent()));
  DeviceArray<float> sent_values(values ? sent_indices.size() : 0);
  copy_entries(cuda, row, offsets.data(), asked, back.sent(), sent_indices.data(),
               values ? sent_values.data() : nullptr);
  back.send(cuda, sent_indices.data(), sent_values.data(), values, fetched);
}

/// One view for each key: into my block or into the fetched rows.
template <class Index>
DeviceArray<RowView<Index>> view_rows(const Cuda& cuda, const DistinctVertices& distinct, const Mine& mine,
                                      const DeviceRowEntries<Index>& fetched, std::int64_t count,
                                      const DeviceDistCsr<Index>& a) {
  DeviceArray<RowView<Index>> rows(static_cast<std::size_t>(count));
  auto* const row = rows.data();
  const auto *const id = distinct.ids.data(), *const place_of = distinct.place_of.data();
  const auto local = rows_of(a.local);
  const RowsInMemory<Index> remote = {fetched.offsets.data(), fetched.indices.data(),
                                      fetched.values.empty() ? nullptr : fetched.values.data()};
  const auto first_row = a.host->first_row();
  for_each(cuda, "view_rows", count, [=] __device__(std::int64_t k) {
    const auto place = place_of[k];
    row[k] = mine.has(place) ? local[id[place] - first_row] : remote[mine.number(place)];
  });
  return rows;
}

}  // namespace

template <class Index>
void pull_product(const Cuda& cuda, const DeviceCommunicator& column, const RowKey* keys, std::int64_t count,
                  const DeviceDistCsr<Index>& a, const std::string& label,
                  const DeviceRowOperation<Index>& operation, DeviceRowEntries<Index>& out) {
  const auto distinct = find_distinct(cuda, keys, count, a);
  const auto part = static_cast<std::size_t>(a.host->part);
  const Mine mine = {distinct.begin[part], distinct.begin[part + 1] - distinct.begin[part]};
  DeviceRowEntries<Index> fetched;
  fetch_distinct(cuda, column, distinct, mine, a, label, fetched);
  const auto rows = view_rows(cuda, distinct, mine, fetched, count, a);
  operation.apply(cuda, rows.data(), keys, count, out);

  const auto shape = shape_of(*a.host);
  const auto entries = static_cast<std::int64_t>(fetched.indices.size()) + distinct.own_entries;
  const auto cost = fetch_cost(shape.parts, shape.parts, 1, static_cast<double>(distinct.begin.back()),
                               static_cast<double>(entries), shape);
  auto& traffic = column.host().traffic();
  traffic.predict(label + "/ids", cost.ids.messages, cost.ids.bytes);
  traffic.predict(label + "/rows", cost.rows.messages, cost.rows.bytes);
}

#define ESPALIER_INSTANTIATE(Index)                                                               \
  template void pull_product(const Cuda&, const DeviceCommunicator&, const RowKey*, std::int64_t, \
                             const DeviceDistCsr<Index>&, const std::string&,                     \
                             const DeviceRowOperation<Index>&, DeviceRowEntries<Index>&);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
