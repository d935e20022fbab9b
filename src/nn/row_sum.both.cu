#include "row_sum.hpp"

#include "espalier/base/kernels.hpp"

#if defined(ESPALIER_FOR_CUDA)
#include "device_row_sum.hpp"
#endif

namespace espalier {

template <class T, class Space>
void sum_rows(const Space& space, ConstViewOn<Space, T> dz, MatrixOn<Space, T>& sum) {
  T* const out = sum.data.data();
  sum_over_rows(
      space, dz.rows, dz.columns,
      [=] ESPALIER_DEVICE(std::int64_t i, std::int64_t j) { return static_cast<double>(dz(i, j)); },
      [=] ESPALIER_DEVICE(std::int64_t j, double of_column) { out[j] = static_cast<T>(of_column); });
}

#define ESPALIER_INSTANTIATE(T) \
  template void sum_rows<T>(const Space&, ConstMatrixView<T, Space>, Matrix<T, Space>&);
ESPALIER_FOR_EACH_NUMBER(ESPALIER_INSTANTIATE)
#undef ESPALIER_INSTANTIATE

}  // namespace espalier
