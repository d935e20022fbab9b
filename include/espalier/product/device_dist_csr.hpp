// A DistCsr's block in memory that the GPU reads.
#pragma once

#include "espalier/base/device_array.hpp"
#include "espalier/product/dist_csr.hpp"

namespace espalier {

/// A copy of a.local in memory of the GPU, or in pinned host memory when the graph is to stay there. `a` must stay.
template <class Index>
DeviceDistCsr<Index> to_device(const Cuda& cuda, const DistCsr<Index>& a,
                               Placement placement = Placement::kDevice);

}  // namespace espalier
