#include "espalier/base/arrays.hpp"
#include "espalier/base/device_algorithms.hpp"
#include "espalier/base/host_device.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/feature/edge_store.hpp"
#include "espalier/feature/row_store.hpp"
#include "espalier/sparse/device_csr.hpp"

namespace espalier {

std::int64_t list_edges(const Cuda& cuda, const BlockView<Cuda>& block, const std::int64_t* vertices,
                        const EdgeColumnsOn<Cuda>& columns, std::int64_t all_columns, std::int64_t* numbers,
                        std::int32_t* entries) {
  const auto count = block.entries(), rows = block.rows;
  const auto *const indptr = block.indptr, *const shifts = columns.shifts.data();
  const auto* const indices = block.indices;
  const std::uint8_t *const relations = block.relations, *const held = columns.held.data();
  const auto put = [=] __device__(std::int64_t e, std::int64_t to) {
    const std::int64_t entry = indptr[0] + e, row = segment_of(indptr, rows, entry);
    const int relation = relations == nullptr ? 0 : relations[entry];
    numbers[to] = vertices[row] * all_columns + vertices[indices[entry]] - shifts[relation];
    entries[to] = static_cast<std::int32_t>(e);
  };
  if (columns.all_held()) {
    for_each(cuda, "list_edges", count, [=] __device__(std::int64_t e) { put(e, e); });
    return count;
  }
  DeviceArray<std::int64_t> counted(count), before(count + 1);
  auto *const has = counted.data(), *const place = before.data();
  for_each(cuda, "count_edges", count, [=] __device__(std::int64_t e) {
    has[e] = held[relations == nullptr ? 0 : relations[indptr[0] + e]];
  });
  exclusive_sum(cuda, has, place, count);
  for_each(cuda, "list_edges", count, [=] __device__(std::int64_t e) {
    if (has[e] != 0) put(e, place[e]);
  });
  const std::int64_t end = count;
  return read_at(cuda, place, {&end, 1})[0];
}

EntryIndexOn<Cuda> to_device(const Cuda& cuda, const EntryIndex& index) {
  const DevicePurpose purpose("features of edges");
  return std::visit(
      [&](const auto& entries) { return EntryIndexOn<Cuda>{upload(cuda, entries, Placement::kDevice)}; },
      index.entries);
}

EdgeStoreOn<Cuda> to_device(const Cuda& cuda, const DeviceGrid& grid, const EdgeStore& host,
                            const Schema& schema, Placement placement) {
  const DevicePurpose purpose("features of edges");
  const auto& rows = host.rows();
  return {RowStoreOn<Cuda>(grid, rows.ownership(), to_device(cuda, *rows.entries()),
                           to_device(cuda, rows.storage().rows(), placement)),
          EdgeColumnsOn<Cuda>(cuda, schema, host.held()), schema.columns()};
}

}  // namespace espalier
