#include "espalier/product/device_dist_csr.hpp"

#include "espalier/sparse/device_csr.hpp"

namespace espalier {

template <class Index>
DeviceDistCsr<Index> to_device(const Cuda& cuda, const DistCsr<Index>& a, Placement placement) {
  const DevicePurpose purpose("the graph");
  return {&a, upload(cuda, a.local, placement)};
}

template DeviceDistCsr<std::int32_t> to_device(const Cuda&, const DistCsr<std::int32_t>&, Placement);
template DeviceDistCsr<std::int64_t> to_device(const Cuda&, const DistCsr<std::int64_t>&, Placement);

}  // namespace espalier
