#include "espalier/product/dist_csr.hpp"
#include "espalier/sparse/device_csr.hpp"

namespace espalier {

template <class Index>
DistCsr<Index, Cuda> to_device(const Cuda& cuda, const DeviceGrid& grid, const DistCsr<Index>& a,
                               Placement placement) {
  const DevicePurpose purpose("the graph");
  ColumnsOn<Cuda> columns;
  if (a.columns.typed()) {
    const auto list = [&](std::span<const std::int64_t> on_host) {
      return SharedList<std::int64_t, Cuda>(cuda, {on_host.begin(), on_host.end()});
    };
    columns.begins = list(a.columns.begins.host());
    columns.shifts = list(a.columns.shifts.host());
  }
  return {&grid,  a.ownership,  {cuda, a.ownership, a.part}, upload(cuda, a.local, placement),
          a.part, a.has_values, &a,                          columns};
}

template DistCsr<std::int32_t, Cuda> to_device(const Cuda&, const DeviceGrid&, const DistCsr<std::int32_t>&,
                                               Placement);
template DistCsr<std::int64_t, Cuda> to_device(const Cuda&, const DeviceGrid&, const DistCsr<std::int64_t>&,
                                               Placement);

}  // namespace espalier
