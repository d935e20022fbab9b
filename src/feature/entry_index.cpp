#include "espalier/feature/entry_index.hpp"

namespace espalier {

void rows_of_entries(const Cpu&, const std::int64_t* numbers, std::int64_t count, std::int64_t columns,
                     std::int64_t* rows) {
  for (std::int64_t k = 0; k < count; ++k) rows[k] = numbers[k] / columns;
}

template <class Id>
void put_entries(const Cpu&, const std::int64_t* numbers, const Buffer<std::int64_t>& order,
                 Buffer<Id>& ids) {
  for (std::size_t j = 0; j < ids.size(); ++j) ids[j] = static_cast<Id>(numbers[order[j]]);
}

template <class Id>
void find_entries(const Cpu& cpu, const EntryIndexOn<Cpu>& index, const PlaceOf& place, Id* ids,
                  std::int64_t count) {
  std::visit(
      [&]<class Index>(const Csr<Index>& entries) {
        const auto columns = entries.columns;
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (count > 1024)
        for (std::int64_t k = 0; k < count; ++k) {
          const std::int64_t number = ids[k];
          ids[k] = static_cast<Id>(entry_place(entries.indptr.data(), entries.indices.data(), entries.rows,
                                               place(number / columns), number % columns));
        }
      },
      index.entries);
}

template void put_entries(const Cpu&, const std::int64_t*, const Buffer<std::int64_t>&,
                          Buffer<std::int32_t>&);
template void put_entries(const Cpu&, const std::int64_t*, const Buffer<std::int64_t>&,
                          Buffer<std::int64_t>&);
template void find_entries(const Cpu&, const EntryIndexOn<Cpu>&, const PlaceOf&, std::int32_t*, std::int64_t);
template void find_entries(const Cpu&, const EntryIndexOn<Cpu>&, const PlaceOf&, std::int64_t*, std::int64_t);

}  // namespace espalier
