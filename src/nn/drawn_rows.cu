#include "drawn_rows.hpp"

#include "espalier/base/launch.hpp"

namespace espalier {

template <class T>
void scale_drawn_rows(const Cuda& cuda, const std::uint8_t* drawn, const std::int64_t* positions,
                      double weight, MatrixView<T, Cuda> rows) {
  const auto factor = static_cast<T>(weight);
  for_each_in_rows(cuda, "scale_drawn_rows", rows.rows, rows.columns,
                   [=] __device__(std::int64_t k, std::int64_t j) {
                     if (drawn[positions[k]] != 0) rows(k, j) *= factor;
                   });
}

template void scale_drawn_rows<float>(const Cuda&, const std::uint8_t*, const std::int64_t*, double,
                                      MatrixView<float, Cuda>);

}  // namespace espalier
