// The rows of P where they lie: with one block row, all of them here. Otherwise see the files of the two schedules.
#include "espalier/product/device_product.hpp"

#include "device_schedules.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

namespace {

// The rows of `a` that the keys name; all must be local.
template <class Index>
DeviceArray<RowView<Index>> local_rows(const Cuda& cuda, const RowKey* keys, std::int64_t count,
                                       const DeviceDistCsr<Index>& a) {
  DeviceArray<RowView<Index>> rows(static_cast<std::size_t>(count));
  auto* to = rows.data();
  const auto local = rows_of(a.local);
  const auto first_row = a.host->first_row();
  for_each(cuda, "local_rows", count,
           [=] __device__(std::int64_t k) { to[k] = local[keys[k].vertex - first_row]; });
  return rows;
}

}  // namespace

template <class Index>
void apply_product(const Cuda& cuda, const DeviceGrid& grid, const RowKey* keys, std::int64_t count,
                   const DeviceDistCsr<Index>& a, Schedule schedule, std::string_view label,
                   const DeviceRowOperation<Index>& operation, DeviceRowEntries<Index>& out) {
  if (a.host->partition.parts() == 1) {
    const auto rows = local_rows(cuda, keys, count, a);
    return operation.apply(cuda, rows.data(), keys, count, out);
  }
  ESPALIER_CHECK(schedule == Schedule::kPull || schedule == Schedule::kPush,
                 "{}: a product on GPUs goes by pull or push, not {}", label, name_of(schedule));
  (schedule == Schedule::kPull ? pull_product<Index> : push_product<Index>)(cuda, grid.column_comm(), keys,
                                                                            count, a, std::string(label),
                                                                            operation, out);
}

#define ESPALIER_INSTANTIATE(Index)                                                        \
  template void apply_product(const Cuda&, const DeviceGrid&, const RowKey*, std::int64_t, \
                              const DeviceDistCsr<Index>&, Schedule, std::string_view,     \
                              const DeviceRowOperation<Index>&, DeviceRowEntries<Index>&);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
