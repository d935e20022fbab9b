// A thread has an element of the result, so the threads of a warp read consecutive elements of the
// rows that are gathered.
#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"
#include "espalier/dense/gather_max.hpp"

namespace espalier {

template <class T>
void gather_max(const Cuda& cuda, const BlockView<Cuda>& block, ConstMatrixView<T, Cuda> x,
                MatrixView<T, Cuda> m, DeviceArray<std::int32_t>& winners) {
  winners.resize(m.rows * m.columns);
  std::int32_t* const winner = winners.data();
  const auto* const indptr = block.indptr;
  const auto* const indices = block.indices;
  for_each_in_rows(cuda, "gather_max", m.rows, m.columns, [=] __device__(std::int64_t i, std::int64_t f) {
    const std::int64_t first = indptr[i];
    T most = 0;
    std::int32_t entry = -1;
    for (std::int64_t e = first; e < indptr[i + 1]; ++e) {
      const T value = x(indices[e], f);
      if (e > first && (value <= most || most != most)) continue;
      most = value;
      entry = static_cast<std::int32_t>(e - indptr[0]);
    }
    m(i, f) = most;
    winner[i * m.columns + f] = entry;
  });
}

template <class T>
void gather_max_backward(const Cuda& cuda, const BlockView<Cuda>& transposed,
                         const DeviceArray<std::int32_t>& positions, const DeviceArray<std::int32_t>& winners,
                         ConstMatrixView<T, Cuda> dm, MatrixView<T, Cuda> dx) {
  const auto* const position = positions.data();
  const auto* const winner = winners.data();
  const auto* const indptr = transposed.indptr;
  const auto* const indices = transposed.indices;
  for_each_in_rows(cuda, "gather_max_backward", dx.rows, dx.columns,
                   [=] __device__(std::int64_t j, std::int64_t f) {
                     T sum = 0;
                     for (std::int64_t k = indptr[j]; k < indptr[j + 1]; ++k) {
                       const std::int64_t i = indices[k];
                       if (winner[i * dx.columns + f] == position[k]) sum += dm(i, f);
                     }
                     dx(j, f) = sum;
                   });
}

template void gather_max<float>(const Cuda&, const BlockView<Cuda>&, ConstMatrixView<float, Cuda>,
                                MatrixView<float, Cuda>, DeviceArray<std::int32_t>&);
template void gather_max_backward<float>(const Cuda&, const BlockView<Cuda>&,
                                         const DeviceArray<std::int32_t>&, const DeviceArray<std::int32_t>&,
                                         ConstMatrixView<float, Cuda>, MatrixView<float, Cuda>);

}  // namespace espalier
