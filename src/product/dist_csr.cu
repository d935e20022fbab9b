// A rank's block of the matrix copied to its GPU, and products there.
#include "espalier/product/dist_csr.hpp"

#include "espalier/sparse/device_csr.hpp"
#include "schedules.inl.hpp"

namespace espalier {

static CutView to_device(const Cuda& cuda, const CutRows& cut) {
  struct OnDevice {
    HolderCodes<Cuda> holders;
    PartMarks<Cuda> mine;
  };
  const auto there = std::make_shared<const OnDevice>(
      cut.holders->on(cuda), PartMarks<Cuda>{upload(cuda, cut.mine->words), upload(cuda, cut.mine->before)});
  return {there->holders.view(), {there->mine.words.data(), there->mine.before.data()}, there};
}

template <class Index>
DistCsr<Index, Cuda> to_device(const Cuda& cuda, const DeviceGrid& grid, const DistCsr<Index>& a,
                               Placement placement) {
  const DevicePurpose purpose("the graph");
  const auto list = [&](const SharedList<std::int64_t>& on_host) {
    return SharedList<std::int64_t, Cuda>(cuda, {on_host.host().begin(), on_host.host().end()});
  };
  ColumnsOn<Cuda> columns;
  columns.begins = list(a.columns.begins);
  columns.shifts = list(a.columns.shifts);
  return {&grid,
          a.ownership,
          {cuda, a.ownership, a.part},
          upload(cuda, a.local, placement),
          a.part,
          a.has_values,
          &a,
          columns,
          list(a.type_ends),
          a.adds_self,
          a.cut,
          a.cut ? to_device(cuda, *a.cut) : CutView()};
}

template DistCsr<std::int32_t, Cuda> to_device(const Cuda&, const DeviceGrid&, const DistCsr<std::int32_t>&,
                                               Placement);
template DistCsr<std::int64_t, Cuda> to_device(const Cuda&, const DeviceGrid&, const DistCsr<std::int64_t>&,
                                               Placement);

ESPALIER_INSTANTIATE_PRODUCT(std::int32_t, Cuda)
ESPALIER_INSTANTIATE_PRODUCT(std::int64_t, Cuda)

}  // namespace espalier
