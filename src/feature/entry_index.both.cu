#include "espalier/feature/entry_index.hpp"

#include "espalier/base/kernels.hpp"

namespace espalier {

void rows_of_entries(const Space& space, const std::int64_t* numbers, std::int64_t count,
                     std::int64_t columns, std::int64_t* rows) {
  for_each(space, "rows_of_entries", count,
           [=] ESPALIER_DEVICE(std::int64_t k) { rows[k] = numbers[k] / columns; });
}

template <class Id, class Space>
void put_entries(const Space& space, const std::int64_t* numbers, OwnerGroups<Id, Space>& groups) {
  const auto* const from = groups.order.data();
  Id* const to = groups.ids.data();
  for_each(space, "put_entries", groups.size(),
           [=] ESPALIER_DEVICE(std::int64_t j) { to[j] = static_cast<Id>(numbers[from[j]]); });
}

template <class Id, class Index>
void find_entries_in(const Space& space, const Csr<Index, Space>& entries, const PlaceOf& place, Id* ids,
                     std::int64_t count) {
  const auto* const indptr = entries.indptr.data();
  const auto* const indices = entries.indices.data();
  const std::int64_t rows = entries.rows, columns = entries.columns;
  for_each(space, "find_entries", count, [=] ESPALIER_DEVICE(std::int64_t k) {
    const std::int64_t number = ids[k];
    ids[k] = static_cast<Id>(entry_place(indptr, indices, rows, place(number / columns), number % columns));
  });
}

template <class Id, class Space>
void find_entries(const Space& space, const EntryIndexOn<Space>& index, const PlaceOf& place, Id* ids,
                  std::int64_t count) {
  std::visit([&](const auto& entries) { find_entries_in(space, entries, place, ids, count); }, index.entries);
}

#define ESPALIER_INSTANTIATE(Id)                                                         \
  template void put_entries(const Space&, const std::int64_t*, OwnerGroups<Id, Space>&); \
  template void find_entries(const Space&, const EntryIndexOn<Space>&, const PlaceOf&, Id*, std::int64_t);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
