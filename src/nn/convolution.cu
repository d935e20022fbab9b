#include "espalier/nn/convolution.hpp"

#include "espalier/base/device_array.hpp"
#include "espalier/base/launch.hpp"
#include "pack.hpp"

namespace espalier {

namespace {

template <int kCount>
void fill_packs(const Cuda& cuda, const float* bias, MatrixView<float, Cuda> z) {
  float* const data = z.data;
  const std::int64_t packs = z.columns / kCount;
  const Divisor by_packs(packs);
  for_each(cuda, "fill_rows", z.rows * packs, [=] __device__(std::int64_t at) {
    const std::int64_t pack = at - by_packs.quotient(at) * packs;
    store_pack(data + at * kCount, load_pack<kCount>(bias + pack * kCount));
  });
}

}  // namespace

template <class T>
void fill_rows(const Cuda& cuda, const Matrix<T, Cuda>& bias, MatrixView<T, Cuda> z) {
  const float* const row = bias.data.data();
  if (z.columns % 4 == 0 && holds_packs(row) && holds_packs(z.data))
    fill_packs<4>(cuda, row, z);
  else
    fill_packs<1>(cuda, row, z);
}

template void fill_rows<float>(const Cuda&, const Matrix<float, Cuda>&, MatrixView<float, Cuda>);

}  // namespace espalier
