// Sparse matrices on their way to the GPU.
#pragma once

#include "espalier/base/device_array.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// A copy of `from` for kernels, in the order of the stream; `from` may be changed at once.
template <class Index>
Csr<Index, Cuda> upload(const Cuda& cuda, const Csr<Index>& from, Placement placement = Placement::kDevice) {
  Csr<Index, Cuda> to;
  to.rows = from.rows;
  to.columns = from.columns;
  to.indptr = upload(cuda, from.indptr, placement);
  to.indices = upload(cuda, from.indices, placement);
  to.values = upload(cuda, from.values, placement);
  to.weighted = from.weighted;
  return to;
}

}  // namespace espalier
