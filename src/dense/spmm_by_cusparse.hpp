// The product of a block and a matrix by cuSPARSE. For spmm.cu, which takes it where it was
// asked for.
#pragma once

#include <limits>

#include "espalier/dense/matrix.hpp"
#include "espalier/sparse/csr.hpp"

namespace espalier {

/// cuSPARSE is given offsets of 32 bits.
inline bool fits_cusparse(const BlockView<Cuda>& block) {
  return block.entries() <= std::numeric_limits<std::int32_t>::max();
}

/// What spmm computes (espalier/dense/spmm.hpp), which has looked at the shapes, within rounding:
/// cuSPARSE sums in an order of its own. The block must fit.
void spmm_by_cusparse(const Cuda&, const BlockView<Cuda>& block, ConstMatrixView<float, Cuda> x,
                      MatrixView<float, Cuda> y, Update);

}  // namespace espalier
