#include "row_views.hpp"

#include <algorithm>
#include <numeric>

#include "espalier/base/id_map.hpp"

namespace espalier {

template <class Id>
Buffer<RowKey> make_keys(const Cpu&, const Id* ids, const SharedList<std::int64_t>& offsets,
                         const SharedList<std::int64_t>& numbers) {
  Buffer<RowKey> keys(offsets.back());
  for (std::int64_t b = 0; b < numbers.size(); ++b)
    for (auto k = offsets[b]; k < offsets[b + 1]; ++k) keys[k] = {ids[k], numbers[b]};
  return keys;
}

template <class Id, class Index>
void view_rows(const Cpu&, const Id* ids, std::int64_t count, const Csr<Index>& block, PlaceOf place,
               RowView<Index>* rows) {
  for (std::int64_t k = 0; k < count; ++k) rows[k] = row_view(block, place(ids[k]));
}

template <class Index>
void view_entries(const Cpu&, const Entries<Index>& entries, const std::int64_t* order,
                  RowView<Index>* rows) {
  for (std::int64_t r = 0; r < entries.rows(); ++r) {
    const auto begin = entries.begin(r);
    rows[order == nullptr ? r : order[r]] = {entries.ids.data() + begin,
                                             entries.values.empty() ? nullptr : entries.values.data() + begin,
                                             entries.size(r)};
  }
}

template <class T>
void take(const Cpu&, const T* from, const std::int64_t* places, std::int64_t count, T* to) {
  for (std::int64_t k = 0; k < count; ++k) to[k] = from[places[k]];
}

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
    if (values) std::copy_n(rows[r].values, rows[r].size, copies.values.begin() + copies.begin(r));
  }
  return copies;
}

template <class Index>
std::int64_t count_entries(const Cpu&, const RowView<Index>* rows, std::int64_t count) {
  return std::accumulate(rows, rows + count, std::int64_t{0},
                         [](std::int64_t sum, const RowView<Index>& row) { return sum + row.size; });
}

template <class Size>
void sizes_of(const Cpu&, const std::int64_t* offsets, std::int64_t rows, Size* sizes) {
  for (std::int64_t r = 0; r < rows; ++r) sizes[r] = static_cast<Size>(offsets[r + 1] - offsets[r]);
}

template <class Size>
void sum_sizes(const Cpu&, const Size* sizes, std::int64_t rows, std::int64_t* offsets) {
  offsets[0] = 0;
  for (std::int64_t r = 0; r < rows; ++r) offsets[r + 1] = offsets[r] + sizes[r];
}

template <class From, class Index>
DistinctIds<Index> find_distinct(const Cpu& cpu, const From* list, std::int64_t count,
                                 const OwnersOn<Cpu>& owners, int last) {
  DistinctIds<Index> found;
  found.place_of.resize(count);
  IdMap seen(count);
  Buffer<std::int64_t> distinct;
  for (std::int64_t k = 0; k < count; ++k) {
    found.place_of[k] = seen.insert(list[k]);
    if (found.place_of[k] == std::ssize(distinct)) distinct.push_back(list[k]);
  }
  group_by_owner(cpu, distinct.data(), std::ssize(distinct), owners, found.groups, last);
  Buffer<std::int64_t> place_in_groups(distinct.size());
  for (std::int64_t j = 0; j < std::ssize(distinct); ++j) place_in_groups[found.groups.order[j]] = j;
  for (auto& place : found.place_of) place = place_in_groups[place];
  return found;
}

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
Buffer<Index> copy_lists(const Cpu&, const Index* ids, const SharedList<std::int64_t>& offsets,
                         const std::vector<std::int64_t>& numbers) {
  Buffer<Index> copies;
  for (const auto number : numbers)
    copies.insert(copies.end(), ids + offsets[number], ids + offsets[number + 1]);
  return copies;
}

#define ESPALIER_INSTANTIATE_FROM(From, Index)                                                  \
  template void view_rows(const Cpu&, const From*, std::int64_t, const Csr<Index>&, PlaceOf,    \
                          RowView<Index>*);                                                     \
  template DistinctIds<Index> find_distinct<From, Index>(const Cpu&, const From*, std::int64_t, \
                                                         const OwnersOn<Cpu>&, int);
#define ESPALIER_INSTANTIATE(Index)                                                                          \
  template void view_entries(const Cpu&, const Entries<Index>&, const std::int64_t*, RowView<Index>*);       \
  template void take(const Cpu&, const RowView<Index>*, const std::int64_t*, std::int64_t, RowView<Index>*); \
  template Entries<Index> copy_rows(const Cpu&, const RowView<Index>*, std::int64_t, bool);                  \
  template std::int64_t count_entries(const Cpu&, const RowView<Index>*, std::int64_t);                      \
  template void sizes_of(const Cpu&, const std::int64_t*, std::int64_t, Index*);                             \
  template void sum_sizes(const Cpu&, const Index*, std::int64_t, std::int64_t*);                            \
  template std::vector<std::int64_t> count_by_batch(const Cpu&, const OwnerGroups<Index>&, const Frontier&); \
  template Buffer<Index> copy_lists(const Cpu&, const Index*, const SharedList<std::int64_t>&,               \
                                    const std::vector<std::int64_t>&);                                       \
  template Buffer<RowKey> make_keys(const Cpu&, const Index*, const SharedList<std::int64_t>&,               \
                                    const SharedList<std::int64_t>&);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
ESPALIER_INSTANTIATE_FROM(std::int32_t, std::int32_t)
ESPALIER_INSTANTIATE_FROM(std::int64_t, std::int32_t)
ESPALIER_INSTANTIATE_FROM(std::int64_t, std::int64_t)
#undef ESPALIER_INSTANTIATE
#undef ESPALIER_INSTANTIATE_FROM

}  // namespace espalier
