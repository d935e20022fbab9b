// The kernels under every schedule: keys, views of rows, copies of rows. Arrays are of the space.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "espalier/base/arrays.hpp"
#include "espalier/base/id_map.hpp"
#include "espalier/comm/traffic.hpp"
#include "espalier/partition/group_by_owner.hpp"
#include "espalier/product/product.hpp"

namespace espalier {

/// keys[k] = {ids[k], numbers[b]}, where id k is of batch b: offsets[b] <= k < offsets[b+1].
template <class Id>
Buffer<RowKey> make_keys(const Cpu&, const Id* ids, const SharedList<std::int64_t>& offsets,
                         const SharedList<std::int64_t>& numbers) {
  Buffer<RowKey> keys(offsets.back());
  for (std::int64_t b = 0; b < numbers.size(); ++b)
    for (auto k = offsets[b]; k < offsets[b + 1]; ++k) keys[k] = {ids[k], numbers[b]};
  return keys;
}
template <class Id>
DeviceArray<RowKey> make_keys(const Cuda& cuda, const Id* ids, const SharedList<std::int64_t, Cuda>& offsets,
                              const SharedList<std::int64_t, Cuda>& numbers);

/// rows[k] = row place(ids[k]) of `block`, for k < count.
template <class Id, class Index>
void view_rows(const Cpu&, const Id* ids, std::int64_t count, const Csr<Index>& block, PlaceOf place,
               RowView<Index>* rows) {
  for (std::int64_t k = 0; k < count; ++k) rows[k] = row_view(block, place(ids[k]));
}
template <class Id, class Index>
void view_rows(const Cuda& cuda, const Id* ids, std::int64_t count, const Csr<Index, Cuda>& block,
               PlaceOf place, RowView<Index>* rows);

/// rows[order[r]] = row r of `entries`, with values or without; rows[r] when `order` is null.
template <class Index>
void view_entries(const Cpu&, const Entries<Index>& entries, bool values, const std::int64_t* order,
                  RowView<Index>* rows) {
  const Beside<const float> beside(values, entries.values);
  for (std::int64_t r = 0; r < entries.rows(); ++r) {
    const auto begin = entries.begin(r);
    rows[order == nullptr ? r : order[r]] = {entries.ids.data() + begin, beside + begin, entries.size(r)};
  }
}
template <class Index>
void view_entries(const Cuda& cuda, const Entries<Index, Cuda>& entries, bool values,
                  const std::int64_t* order, RowView<Index>* rows);

/// to[k] = from[places[k]] for k < count.
template <class T>
void take(const Cpu&, const T* from, const std::int64_t* places, std::int64_t count, T* to) {
  for (std::int64_t k = 0; k < count; ++k) to[k] = from[places[k]];
}
template <class T>
void take(const Cuda& cuda, const T* from, const std::int64_t* places, std::int64_t count, T* to);

/// Copies of rows [count], one after another. On a GPU the host waits once.
template <class Index>
Entries<Index> copy_rows(const Cpu& cpu, const RowView<Index>* rows, std::int64_t count, bool values) {
  Entries<Index> copies;
  copies.offsets.resize(count + 1);
  for (std::int64_t r = 0; r < count; ++r) copies.offsets[r + 1] = copies.offsets[r] + rows[r].size;
  copies.ids.resize(copies.offsets.back());
  copies.values.resize(values ? copies.ids.size() : 0);
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t r = 0; r < count; ++r) {
    std::copy_n(rows[r].indices, rows[r].size, copies.ids.begin() + copies.begin(r));
    if (values) std::copy_n(rows[r].values.data(), rows[r].size, copies.values.begin() + copies.begin(r));
  }
  return copies;
}
template <class Index>
Entries<Index, Cuda> copy_rows(const Cuda& cuda, const RowView<Index>* rows, std::int64_t count, bool values);

/// The entries of rows [count], on the host.
template <class Index>
std::int64_t count_entries(const Cpu&, const RowView<Index>* rows, std::int64_t count) {
  return std::accumulate(rows, rows + count, std::int64_t{0},
                         [](std::int64_t sum, const RowView<Index>& row) { return sum + row.size; });
}
template <class Index>
std::int64_t count_entries(const Cuda& cuda, const RowView<Index>* rows, std::int64_t count);

/// sizes[r] = offsets[r+1] - offsets[r] for r < rows, as they travel; and the way back.
template <class Size>
void sizes_of(const Cpu&, const std::int64_t* offsets, std::int64_t rows, Size* sizes) {
  for (std::int64_t r = 0; r < rows; ++r) sizes[r] = static_cast<Size>(offsets[r + 1] - offsets[r]);
}
template <class Size>
void sizes_of(const Cuda& cuda, const std::int64_t* offsets, std::int64_t rows, Size* sizes);
template <class Size>
void sum_sizes(const Cpu&, const Size* sizes, std::int64_t rows, std::int64_t* offsets) {
  offsets[0] = 0;
  for (std::int64_t r = 0; r < rows; ++r) offsets[r + 1] = offsets[r] + sizes[r];
}
template <class Size>
void sum_sizes(const Cuda& cuda, const Size* sizes, std::int64_t rows, std::int64_t* offsets);

/// The different ids of a list, grouped by owner, those of one part after all others.
template <class Index, class Space = Cpu>
struct DistinctIds {
  OwnerGroups<Index, Space> groups;     ///< of the ids; `order` is not said
  Array<Space, std::int64_t> place_of;  ///< [list] the place of each id of the list in groups.ids;
                                        ///< of pieces: its row
  std::int64_t rows = 0;                ///< of pieces: how many; piece j is of row groups.order[j]
};

/// The different ids of list [count] as they come, and which of them each is.
template <class From>
Buffer<std::int64_t> number_ids(const From* list, std::int64_t count, Buffer<std::int64_t>& number_of) {
  number_of.resize(count);
  IdMap seen(count);
  Buffer<std::int64_t> distinct;
  for (std::int64_t k = 0; k < count; ++k) {
    number_of[k] = seen.insert(list[k]);
    if (number_of[k] == std::ssize(distinct)) distinct.push_back(list[k]);
  }
  return distinct;
}

/// Of list [count]; those of part `last` come last and are not counted. On a GPU the host waits.
template <class From, class Index>
DistinctIds<Index> find_distinct(const Cpu& cpu, const From* list, std::int64_t count,
                                 const OwnersOn<Cpu>& owners, int last) {
  DistinctIds<Index> found;
  const auto distinct = number_ids(list, count, found.place_of);
  group_by_owner(cpu, distinct.data(), std::ssize(distinct), owners, found.groups, last);
  Buffer<std::int64_t> place_in_groups(distinct.size());
  for (std::int64_t j = 0; j < std::ssize(distinct); ++j) place_in_groups[found.groups.order[j]] = j;
  for (auto& place : found.place_of) place = place_in_groups[place];
  return found;
}
/// The same of a matrix that is cut, of n rows: a piece is asked of each part that holds some of a
/// row.
template <class From, class Index>
DistinctIds<Index> find_pieces(const Cpu& cpu, const From* list, std::int64_t count, std::int64_t /*n*/,
                               const HoldersOf& holders, int parts, int last) {
  DistinctIds<Index> found;
  const auto distinct = number_ids(list, count, found.place_of);
  found.rows = std::ssize(distinct);
  group_by_holder(cpu, distinct.data(), found.rows, holders, parts, found.groups, last);
  return found;
}
template <class From, class Index>
DistinctIds<Index, Cuda> find_pieces(const Cuda& cuda, const From* list, std::int64_t count, std::int64_t n,
                                     const HoldersOf& holders, int parts, int last);
template <class From, class Index>
DistinctIds<Index, Cuda> find_distinct(const Cuda& cuda, const From* list, std::int64_t count,
                                       const OwnersOn<Cuda>& owners, int last);

/// [parts][batches]: how many ids of each part are of each batch. `groups`: of q's vertices.
template <class Index>
std::vector<std::int64_t> count_by_batch(const Cpu&, const OwnerGroups<Index>& groups, const Frontier& q) {
  std::vector<std::int64_t> counts(groups.counts.size() * q.batches(), 0);
  std::int64_t j = 0;
  for (std::int64_t part = 0; part < std::ssize(groups.counts); ++part) {
    std::int64_t batch = 0;  // the order of a part ascends
    for (const auto end = j + groups.counts[part]; j < end; ++j) {
      while (q.offsets[batch + 1] <= groups.order[j]) ++batch;
      ++counts[part * q.batches() + batch];
    }
  }
  return counts;
}
template <class Index>
std::vector<std::int64_t> count_by_batch(const Cuda& cuda, const OwnerGroups<Index, Cuda>& groups,
                                         const FrontierOn<Cuda>& q);

/// The lists numbers[0], ... of a stack, joined: list k is ids[offsets[k] .. offsets[k+1]).
template <class Index>
Buffer<Index> copy_lists(const Cpu&, const Index* ids, const SharedList<std::int64_t>& offsets,
                         const std::vector<std::int64_t>& numbers) {
  Buffer<Index> copies;
  for (const auto number : numbers)
    copies.insert(copies.end(), ids + offsets[number], ids + offsets[number + 1]);
  return copies;
}
template <class Index>
DeviceArray<Index> copy_lists(const Cuda& cuda, const Index* ids,
                              const SharedList<std::int64_t, Cuda>& offsets,
                              const std::vector<std::int64_t>& numbers);

/// Differences of neighbours.
inline std::vector<std::int64_t> counts_between(std::span<const std::int64_t> begins) {
  std::vector<std::int64_t> counts;
  for (std::size_t k = 0; k + 1 < begins.size(); ++k) counts.push_back(begins[k + 1] - begins[k]);
  return counts;
}

/// For each rank, the sum of its counts[rank] sizes, which stand one after another.
inline std::vector<std::int64_t> sum_by_rank(std::span<const std::int64_t> counts,
                                             std::span<const std::int64_t> sizes) {
  std::vector<std::int64_t> sums;
  auto from = sizes.begin();
  for (const auto count : counts) {
    sums.push_back(std::accumulate(from, from + count, std::int64_t{0}));
    from += count;
  }
  return sums;
}

}  // namespace espalier
