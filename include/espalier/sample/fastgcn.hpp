// FastGCN on a GPU (src/sample/fastgcn.cpp says what it is).
#pragma once

#include <memory>

#include "espalier/sample/sampler.hpp"

namespace espalier {

/// For a matrix whose rows are all there (one block row). Collective over the grid.
template <class Index>
std::unique_ptr<DeviceSampler> make_fastgcn(const Cuda& cuda, const DeviceDistCsr<Index>& m,
                                            const SamplerShape& shape);

}  // namespace espalier
