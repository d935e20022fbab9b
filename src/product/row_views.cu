#include "row_views.hpp"

#include <bit>

#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

template <class Id>
DeviceArray<RowKey> make_keys(const Cuda& cuda, const Id* ids, const SharedList<std::int64_t, Cuda>& offsets,
                              const SharedList<std::int64_t, Cuda>& numbers) {
  DeviceArray<RowKey> keys(offsets.back());
  auto* const to = keys.data();
  const auto *const offset = offsets.data(), *const number = numbers.data();
  const auto batches = numbers.size();
  for_each(cuda, "make_keys", offsets.back(), [=] __device__(std::int64_t k) {
    to[k] = {ids[k], number[segment_of(offset, batches, k)]};
  });
  return keys;
}

template <class Id, class Index>
void view_rows(const Cuda& cuda, const Id* ids, std::int64_t count, const Csr<Index, Cuda>& block,
               PlaceOf place, RowView<Index>* rows) {
  const auto* const indptr = block.indptr.data();
  const auto* const indices = block.indices.data();
  const auto values = block.values_beside();
  for_each(cuda, "view_rows", count, [=] __device__(std::int64_t k) {
    const auto row = place(ids[k]);
    const auto begin = indptr[row];
    rows[k] = {indices + begin, values + begin, indptr[row + 1] - begin};
  });
}

template <class Index>
void view_entries(const Cuda& cuda, const Entries<Index, Cuda>& entries, bool values,
                  const std::int64_t* order, RowView<Index>* rows) {
  const auto* const offsets = entries.offsets.data();
  const auto* const ids = entries.ids.data();
  const Beside<const float> beside(values, entries.values);
  for_each(cuda, "view_entries", entries.rows(), [=] __device__(std::int64_t r) {
    const auto begin = offsets[r];
    rows[order == nullptr ? r : order[r]] = {ids + begin, beside + begin, offsets[r + 1] - begin};
  });
}

template <class T>
void take(const Cuda& cuda, const T* from, const std::int64_t* places, std::int64_t count, T* to) {
  for_each(cuda, "take", count, [=] __device__(std::int64_t k) { to[k] = from[places[k]]; });
}

namespace {

// to[r] = the size of row r.
template <class Index>
void sizes_of_rows(const Cuda& cuda, const RowView<Index>* rows, std::int64_t count, std::int64_t* to) {
  for_each(cuda, "sizes_of_rows", count, [=] __device__(std::int64_t r) { to[r] = rows[r].size; });
}

// Copies rows[r] to ids + offsets[r] (values beside them, unless null); a thread for each entry.
template <class Index>
void copy_entries(const Cuda& cuda, const RowView<Index>* rows, const std::int64_t* offsets,
                  std::int64_t count, std::int64_t entries, Index* ids, float* values) {
  for_each(cuda, "copy_entries", entries, [=] __device__(std::int64_t e) {
    const std::int64_t row = segment_of(offsets, count, e), k = e - offsets[row];
    ids[e] = rows[row].indices[k];
    if (values != nullptr) values[e] = rows[row].values[k];
  });
}

}  // namespace

template <class Index>
Entries<Index, Cuda> copy_rows(const Cuda& cuda, const RowView<Index>* rows, std::int64_t count,
                               bool values) {
  Entries<Index, Cuda> copies;
  DeviceArray<std::int64_t> sizes(count);
  sizes_of_rows(cuda, rows, count, sizes.data());
  copies.offsets.resize(count + 1);
  exclusive_sum(cuda, sizes.data(), copies.offsets.data(), count);
  const auto entries = download(cuda, copies.offsets.data() + count, 1)[0];
  copies.ids.resize(entries);
  copies.values.resize(values ? entries : 0);
  copy_entries(cuda, rows, copies.offsets.data(), count, entries, copies.ids.data(),
               values ? copies.values.data() : nullptr);
  return copies;
}

template <class Index>
std::int64_t count_entries(const Cuda& cuda, const RowView<Index>* rows, std::int64_t count) {
  if (count == 0) return 0;
  DeviceArray<std::int64_t> sizes(count), sum(1);
  sizes_of_rows(cuda, rows, count, sizes.data());
  reduce_sum(cuda, sizes.data(), count, sum.data());
  return download(cuda, sum)[0];
}

template <class Size>
void sizes_of(const Cuda& cuda, const std::int64_t* offsets, std::int64_t rows, Size* sizes) {
  for_each(cuda, "sizes_of", rows,
           [=] __device__(std::int64_t r) { sizes[r] = static_cast<Size>(offsets[r + 1] - offsets[r]); });
}

template <class Size>
void sum_sizes(const Cuda& cuda, const Size* sizes, std::int64_t rows, std::int64_t* offsets) {
  DeviceArray<std::int64_t> wide(rows);
  auto* const to = wide.data();
  for_each(cuda, "widen_sizes", rows, [=] __device__(std::int64_t r) { to[r] = sizes[r]; });
  exclusive_sum(cuda, to, offsets, rows);
}

namespace {

// The different ids of a list, ascending, and which of them each is: the sorted list has one head
// for each.
struct NumberedIds {
  DeviceArray<std::int64_t> distinct;
  DeviceArray<std::int64_t> order;    // of the sorted list: its k-th is number order[k] of the list
  DeviceArray<std::int64_t> numbers;  // and number numbers[k+1] - 1 of `distinct`
};

// Of list [count], ids below n.
template <class From>
NumberedIds number_ids(const Cuda& cuda, const From* list, std::int64_t count, std::int64_t n) {
  NumberedIds found;
  DeviceArray<std::uint64_t> ids(count), sorted_ids(count);
  DeviceArray<std::int64_t> places(count), heads(count);
  found.order.resize(count);
  found.numbers.resize(count + 1);
  auto *const id = ids.data(), *const sorted = sorted_ids.data();
  auto *const place = places.data(), *const head = heads.data(), *const number = found.numbers.data();
  for_each(cuda, "take_ids", count, [=] __device__(std::int64_t k) {
    id[k] = static_cast<std::uint64_t>(list[k]);
    place[k] = k;
  });
  sort_pairs(cuda, id, sorted, place, found.order.data(), count,
             std::max<int>(1, std::bit_width(static_cast<std::uint64_t>(n))));
  for_each(cuda, "find_heads", count,
           [=] __device__(std::int64_t j) { head[j] = j == 0 || sorted[j] != sorted[j - 1]; });
  exclusive_sum(cuda, head, number, count);
  found.distinct.resize(download(cuda, number + count, 1)[0]);
  auto* const to = found.distinct.data();
  for_each(cuda, "write_distinct", count, [=] __device__(std::int64_t j) {
    if (head[j] != 0) to[number[j]] = static_cast<std::int64_t>(sorted[j]);
  });
  return found;
}

// place_of[k] = place[number of id k], or that number where `place` is null.
void write_places(const Cuda& cuda, const NumberedIds& ids, const std::int64_t* place,
                  DeviceArray<std::int64_t>& place_of) {
  const auto count = static_cast<std::int64_t>(ids.order.size());
  place_of.resize(count);
  auto* const to = place_of.data();
  const auto *const order = ids.order.data(), *const number = ids.numbers.data();
  for_each(cuda, "write_places", count, [=] __device__(std::int64_t j) {
    const auto k = number[j + 1] - 1;
    to[order[j]] = place == nullptr ? k : place[k];
  });
}

}  // namespace

// The different ids are grouped by owner.
template <class From, class Index>
DistinctIds<Index, Cuda> find_distinct(const Cuda& cuda, const From* list, std::int64_t count,
                                       const OwnersOn<Cuda>& owners, int last) {
  const auto ids = number_ids(cuda, list, count, owners.bounds.back());
  const auto distinct = static_cast<std::int64_t>(ids.distinct.size());
  DistinctIds<Index, Cuda> found;
  group_by_owner(cuda, ids.distinct.data(), distinct, owners, found.groups, last);
  DeviceArray<std::int64_t> place_in_groups(distinct);
  auto* const in_groups = place_in_groups.data();
  const auto* const grouped = found.groups.order.data();
  for_each(cuda, "invert", distinct, [=] __device__(std::int64_t j) { in_groups[grouped[j]] = j; });
  write_places(cuda, ids, in_groups, found.place_of);
  return found;
}

template <class From, class Index>
DistinctIds<Index, Cuda> find_pieces(const Cuda& cuda, const From* list, std::int64_t count, std::int64_t n,
                                     const HoldersOf& holders, int parts, int last) {
  const auto ids = number_ids(cuda, list, count, n);
  DistinctIds<Index, Cuda> found;
  found.rows = static_cast<std::int64_t>(ids.distinct.size());
  group_by_holder(cuda, ids.distinct.data(), found.rows, holders, parts, found.groups, last);
  write_places(cuda, ids, nullptr, found.place_of);
  return found;
}

template <class Index>
std::vector<std::int64_t> count_by_batch(const Cuda& cuda, const OwnerGroups<Index, Cuda>& groups,
                                         const FrontierOn<Cuda>& q) {
  const auto parts = std::ssize(groups.counts), batches = q.batches();
  const SharedList<std::int64_t, Cuda> begins(cuda, begins_of(groups.counts));
  DeviceArray<std::int64_t> counts(parts * batches);
  auto* const to = counts.data();
  const auto *const begin = begins.data(), *const order = groups.order.data(),
                    *const offset = q.offsets.data();
  for_each(cuda, "count_by_batch", parts * batches, [=] __device__(std::int64_t k) {
    const auto part = k / batches, batch = k % batches, size = begin[part + 1] - begin[part];
    const auto* const of_part = order + begin[part];  // ascends
    to[k] = count_below(of_part, size, offset[batch + 1]) - count_below(of_part, size, offset[batch]);
  });
  const auto on_host = download(cuda, counts);
  return {on_host.begin(), on_host.end()};
}

template <class Index>
DeviceArray<Index> copy_lists(const Cuda& cuda, const Index* ids,
                              const SharedList<std::int64_t, Cuda>& offsets,
                              const std::vector<std::int64_t>& numbers) {
  std::vector<std::int64_t> begins = {0};
  for (const auto number : numbers) begins.push_back(begins.back() + offsets[number + 1] - offsets[number]);
  const SharedList<std::int64_t, Cuda> lists(cuda, numbers), ends(cuda, std::move(begins));
  DeviceArray<Index> copies(ends.back());
  auto* const to = copies.data();
  const auto *const list = lists.data(), *const begin = ends.data(), *const from = offsets.data();
  const auto count = lists.size();
  for_each(cuda, "copy_lists", ends.back(), [=] __device__(std::int64_t k) {
    const auto l = segment_of(begin, count, k);
    to[k] = ids[from[list[l]] + k - begin[l]];
  });
  return copies;
}

#define ESPALIER_INSTANTIATE_FROM(From, Index)                                                         \
  template void view_rows(const Cuda&, const From*, std::int64_t, const Csr<Index, Cuda>&, PlaceOf,    \
                          RowView<Index>*);                                                            \
  template DistinctIds<Index, Cuda> find_distinct<From, Index>(const Cuda&, const From*, std::int64_t, \
                                                               const OwnersOn<Cuda>&, int);            \
  template DistinctIds<Index, Cuda> find_pieces<From, Index>(const Cuda&, const From*, std::int64_t,   \
                                                             std::int64_t, const HoldersOf&, int, int);
#define ESPALIER_INSTANTIATE(Index)                                                                        \
  template void view_entries(const Cuda&, const Entries<Index, Cuda>&, bool, const std::int64_t*,          \
                             RowView<Index>*);                                                             \
  template void take(const Cuda&, const RowView<Index>*, const std::int64_t*, std::int64_t,                \
                     RowView<Index>*);                                                                     \
  template Entries<Index, Cuda> copy_rows(const Cuda&, const RowView<Index>*, std::int64_t, bool);         \
  template std::int64_t count_entries(const Cuda&, const RowView<Index>*, std::int64_t);                   \
  template void sizes_of(const Cuda&, const std::int64_t*, std::int64_t, Index*);                          \
  template void sum_sizes(const Cuda&, const Index*, std::int64_t, std::int64_t*);                         \
  template std::vector<std::int64_t> count_by_batch(const Cuda&, const OwnerGroups<Index, Cuda>&,          \
                                                    const FrontierOn<Cuda>&);                              \
  template DeviceArray<Index> copy_lists(const Cuda&, const Index*, const SharedList<std::int64_t, Cuda>&, \
                                         const std::vector<std::int64_t>&);                                \
  template DeviceArray<RowKey> make_keys(const Cuda&, const Index*, const SharedList<std::int64_t, Cuda>&, \
                                         const SharedList<std::int64_t, Cuda>&);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
ESPALIER_INSTANTIATE_FROM(std::int32_t, std::int32_t)
ESPALIER_INSTANTIATE_FROM(std::int64_t, std::int32_t)
ESPALIER_INSTANTIATE_FROM(std::int64_t, std::int64_t)
#undef ESPALIER_INSTANTIATE
#undef ESPALIER_INSTANTIATE_FROM

}  // namespace espalier
