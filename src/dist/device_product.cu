// The rows of P where they lie: with one block row, all of them here.
#include "espalier/dist/device_product.hpp"

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
  const auto* indptr = a.local.indptr.data();
  const auto* indices = a.local.indices.data();
  const float* values = a.local.has_values() ? a.local.values.data() : nullptr;
  const auto first_row = a.host->first_row();
  for_each(cuda, "local_rows", count, [=] __device__(std::int64_t k) {
    const auto row = keys[k].vertex - first_row;
    const auto begin = indptr[row], end = indptr[row + 1];
    to[k] = {indices + begin, values == nullptr ? nullptr : values + begin, end - begin};
  });
  return rows;
}

}  // namespace

template <class Index>
void apply_product(const Cuda& cuda, const DeviceGrid&, const RowKey* keys, std::int64_t count,
                   const DeviceDistCsr<Index>& a, Schedule schedule, std::string_view label,
                   const DeviceRowOperation<Index>& operation, DeviceRowEntries<Index>& out) {
  if (a.host->partition.parts() == 1) {
    const auto rows = local_rows(cuda, keys, count, a);
    return operation.apply(cuda, rows.data(), keys, count, out);
  }
  // Here pull and push bring rows or results of other block rows.
  ESPALIER_CHECK(false, "{}: products by schedule {} run on one block row", label, name_of(schedule));
}

#define ESPALIER_INSTANTIATE(Index)                                                        \
  template void apply_product(const Cuda&, const DeviceGrid&, const RowKey*, std::int64_t, \
                              const DeviceDistCsr<Index>&, Schedule, std::string_view,     \
                              const DeviceRowOperation<Index>&, DeviceRowEntries<Index>&);
ESPALIER_INSTANTIATE(std::int32_t)
ESPALIER_INSTANTIATE(std::int64_t)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
