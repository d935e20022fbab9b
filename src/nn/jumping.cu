#include "espalier/nn/jumping.hpp"

#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

template <class T>
void place_columns(const Cuda& cuda, ConstMatrixView<T, Cuda> h, std::int64_t at, MatrixView<T, Cuda> j) {
  for_each_in_rows(cuda, "place_columns", j.rows, h.columns,
                   [=] __device__(std::int64_t i, std::int64_t f) { j(i, at + f) = h(i, f); });
}

template <class T>
void add_columns(const Cuda& cuda, ConstMatrixView<T, Cuda> dj, std::int64_t at,
                 MatrixView<T, Cuda> gradient) {
  for_each_in_rows(cuda, "add_columns", dj.rows, gradient.columns,
                   [=] __device__(std::int64_t i, std::int64_t f) { gradient(i, f) += dj(i, at + f); });
}

template <class T>
void take_larger(const Cuda& cuda, ConstMatrixView<T, Cuda> h, int number, MatrixView<T, Cuda> j,
                 DeviceArray<std::int32_t>& winners) {
  winners.resize(j.rows * j.columns);
  std::int32_t* const winner = winners.data();
  for_each(cuda, "take_larger", j.rows * j.columns, [=] __device__(std::int64_t e) {
    if (number > 1 && (h.data[e] <= j.data[e] || j.data[e] != j.data[e])) return;
    j.data[e] = h.data[e];
    winner[e] = number;
  });
}

template <class T>
void add_where_larger(const Cuda& cuda, ConstMatrixView<T, Cuda> dj, int number,
                      const DeviceArray<std::int32_t>& winners, MatrixView<T, Cuda> gradient) {
  const std::int32_t* const winner = winners.data();
  for_each(cuda, "add_where_larger", dj.rows * dj.columns, [=] __device__(std::int64_t e) {
    if (winner[e] == number) gradient.data[e] += dj.data[e];
  });
}

template void place_columns<float>(const Cuda&, ConstMatrixView<float, Cuda>, std::int64_t,
                                   MatrixView<float, Cuda>);
template void add_columns<float>(const Cuda&, ConstMatrixView<float, Cuda>, std::int64_t,
                                 MatrixView<float, Cuda>);
template void take_larger<float>(const Cuda&, ConstMatrixView<float, Cuda>, int, MatrixView<float, Cuda>,
                                 DeviceArray<std::int32_t>&);
template void add_where_larger<float>(const Cuda&, ConstMatrixView<float, Cuda>, int,
                                      const DeviceArray<std::int32_t>&, MatrixView<float, Cuda>);

}  // namespace espalier
