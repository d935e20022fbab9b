// The leaves under every schedule: keys, views of rows wherever they lie, rows copied together. All
// arrays are memory of the space.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "espalier/base/arrays.hpp"
#include "espalier/partition/group_by_owner.hpp"
#include "espalier/product/product.hpp"

namespace espalier {

/// keys[k] = {ids[k], numbers[b]}, where id k is of batch b: offsets[b] <= k < offsets[b+1].
template <class Id>
Buffer<RowKey> make_keys(const Cpu& cpu, const Id* ids, const SharedList<std::int64_t>& offsets,
                         const SharedList<std::int64_t>& numbers);
template <class Id>
DeviceArray<RowKey> make_keys(const Cuda& cuda, const Id* ids, const SharedList<std::int64_t, Cuda>& offsets,
                              const SharedList<std::int64_t, Cuda>& numbers);

/// rows[k] = row place(ids[k]) of `block`, for k < count.
template <class Id, class Index>
void view_rows(const Cpu& cpu, const Id* ids, std::int64_t count, const Csr<Index>& block, PlaceOf place,
               RowView<Index>* rows);
template <class Id, class Index>
void view_rows(const Cuda& cuda, const Id* ids, std::int64_t count, const Csr<Index, Cuda>& block,
               PlaceOf place, RowView<Index>* rows);

/// rows[order[r]] = row r of `entries`; rows[r] when `order` is null.
template <class Index>
void view_entries(const Cpu& cpu, const Entries<Index>& entries, const std::int64_t* order,
                  RowView<Index>* rows);
template <class Index>
void view_entries(const Cuda& cuda, const Entries<Index, Cuda>& entries, const std::int64_t* order,
                  RowView<Index>* rows);

/// to[k] = from[places[k]] for k < count.
template <class T>
void take(const Cpu& cpu, const T* from, const std::int64_t* places, std::int64_t count, T* to);
template <class T>
void take(const Cuda& cuda, const T* from, const std::int64_t* places, std::int64_t count, T* to);

/// Copies of rows [count], one after another. On a GPU the host waits once.
template <class Index>
Entries<Index> copy_rows(const Cpu& cpu, const RowView<Index>* rows, std::int64_t count, bool values);
template <class Index>
Entries<Index, Cuda> copy_rows(const Cuda& cuda, const RowView<Index>* rows, std::int64_t count, bool values);

/// The entries of rows [count], on the host.
template <class Index>
std::int64_t count_entries(const Cpu& cpu, const RowView<Index>* rows, std::int64_t count);
template <class Index>
std::int64_t count_entries(const Cuda& cuda, const RowView<Index>* rows, std::int64_t count);

/// sizes[r] = offsets[r+1] - offsets[r] for r < rows, as they travel; and offsets [rows + 1]
/// from sizes.
template <class Size>
void sizes_of(const Cpu& cpu, const std::int64_t* offsets, std::int64_t rows, Size* sizes);
template <class Size>
void sizes_of(const Cuda& cuda, const std::int64_t* offsets, std::int64_t rows, Size* sizes);
template <class Size>
void sum_sizes(const Cpu& cpu, const Size* sizes, std::int64_t rows, std::int64_t* offsets);
template <class Size>
void sum_sizes(const Cuda& cuda, const Size* sizes, std::int64_t rows, std::int64_t* offsets);

/// The different ids of a list, grouped by owner, those of one part after all others.
template <class Index, class Space = Cpu>
struct DistinctIds {
  OwnerGroups<Index, Space> groups;     ///< of the ids; `order` is not said
  Array<Space, std::int64_t> place_of;  ///< [list] the place of each id of the list in groups.ids
};

/// Of list [count]; those of part `last` come after all others and are not counted. The order
/// within a part is not said. On a GPU the host waits.
template <class From, class Index>
DistinctIds<Index> find_distinct(const Cpu& cpu, const From* list, std::int64_t count,
                                 const OwnersOn<Cpu>& owners, int last);
template <class From, class Index>
DistinctIds<Index, Cuda> find_distinct(const Cuda& cuda, const From* list, std::int64_t count,
                                       const OwnersOn<Cuda>& owners, int last);

/// [parts][batches]: how many of the ids of each part are of each batch. `groups`: of the
/// vertices of q.
template <class Index>
std::vector<std::int64_t> count_by_batch(const Cpu& cpu, const OwnerGroups<Index>& groups, const Frontier& q);
template <class Index>
std::vector<std::int64_t> count_by_batch(const Cuda& cuda, const OwnerGroups<Index, Cuda>& groups,
                                         const FrontierOn<Cuda>& q);

/// The lists numbers[0], numbers[1], ... of a stack, one after another: list k is ids[offsets[k] ..
/// offsets[k+1]).
template <class Index>
Buffer<Index> copy_lists(const Cpu& cpu, const Index* ids, const SharedList<std::int64_t>& offsets,
                         const std::vector<std::int64_t>& numbers);
template <class Index>
DeviceArray<Index> copy_lists(const Cuda& cuda, const Index* ids,
                              const SharedList<std::int64_t, Cuda>& offsets,
                              const std::vector<std::int64_t>& numbers);

/// {0, counts[0], counts[0] + counts[1], ...}: where the pieces of ranks begin, and the end.
inline std::vector<std::int64_t> begins_of(std::span<const std::int64_t> counts) {
  std::vector<std::int64_t> begins = {0};
  for (const auto count : counts) begins.push_back(begins.back() + count);
  return begins;
}

/// Differences of neighbours.
inline std::vector<std::int64_t> counts_between(std::span<const std::int64_t> begins) {
  std::vector<std::int64_t> counts;
  for (std::size_t k = 0; k + 1 < begins.size(); ++k) counts.push_back(begins[k + 1] - begins[k]);
  return counts;
}

}  // namespace espalier
