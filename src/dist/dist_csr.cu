#include "espalier/dist/device_dist_csr.hpp"

namespace espalier {

template <class Index>
DeviceDistCsr<Index> to_device(const Cuda& cuda, const DistCsr<Index>& a, Placement placement) {
  const DevicePurpose purpose("the graph");
  DeviceDistCsr<Index> copy;
  copy.host = &a;
  copy.local.rows = a.local.rows;
  copy.local.columns = a.local.columns;
  copy.local.indptr = upload(cuda, a.local.indptr, placement);
  copy.local.indices = upload(cuda, a.local.indices, placement);
  copy.local.values = upload(cuda, a.local.values, placement);
  return copy;
}

template DeviceDistCsr<std::int32_t> to_device(const Cuda&, const DistCsr<std::int32_t>&, Placement);
template DeviceDistCsr<std::int64_t> to_device(const Cuda&, const DistCsr<std::int64_t>&, Placement);

}  // namespace espalier
