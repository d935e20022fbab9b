#include "espalier/base/launch.hpp"
#include "espalier/feature/entry_index.hpp"
#include "espalier/sparse/device_csr.hpp"

namespace espalier {

EntryIndexOn<Cuda> to_device(const Cuda& cuda, const EntryIndex& index) {
  const DevicePurpose purpose("features of edges");
  return std::visit(
      [&](const auto& entries) { return EntryIndexOn<Cuda>{upload(cuda, entries, Placement::kDevice)}; },
      index.entries);
}

void rows_of_entries(const Cuda& cuda, const std::int64_t* numbers, std::int64_t count, std::int64_t columns,
                     std::int64_t* rows) {
  for_each(cuda, "rows_of_entries", count,
           [=] __device__(std::int64_t k) { rows[k] = numbers[k] / columns; });
}

template <class Id>
void put_entries(const Cuda& cuda, const std::int64_t* numbers, const DeviceArray<std::int64_t>& order,
                 DeviceArray<Id>& ids) {
  const auto* const from = order.data();
  Id* const to = ids.data();
  for_each(cuda, "put_entries", std::ssize(ids),
           [=] __device__(std::int64_t j) { to[j] = static_cast<Id>(numbers[from[j]]); });
}

template <class Id, class Index>
void find_entries_in(const Cuda& cuda, const Csr<Index, Cuda>& entries, const PlaceOf& place, Id* ids,
                     std::int64_t count) {
  const auto* const indptr = entries.indptr.data();
  const auto* const indices = entries.indices.data();
  const std::int64_t rows = entries.rows, columns = entries.columns;
  for_each(cuda, "find_entries", count, [=] __device__(std::int64_t k) {
    const std::int64_t number = ids[k];
    ids[k] = static_cast<Id>(entry_place(indptr, indices, rows, place(number / columns), number % columns));
  });
}

template <class Id>
void find_entries(const Cuda& cuda, const EntryIndexOn<Cuda>& index, const PlaceOf& place, Id* ids,
                  std::int64_t count) {
  std::visit([&](const auto& entries) { find_entries_in(cuda, entries, place, ids, count); }, index.entries);
}

template void put_entries(const Cuda&, const std::int64_t*, const DeviceArray<std::int64_t>&,
                          DeviceArray<std::int32_t>&);
template void put_entries(const Cuda&, const std::int64_t*, const DeviceArray<std::int64_t>&,
                          DeviceArray<std::int64_t>&);
template void find_entries(const Cuda&, const EntryIndexOn<Cuda>&, const PlaceOf&, std::int32_t*,
                           std::int64_t);
template void find_entries(const Cuda&, const EntryIndexOn<Cuda>&, const PlaceOf&, std::int64_t*,
                           std::int64_t);

}  // namespace espalier
