#include "drawn_rows.hpp"

namespace espalier {

template <class T>
void scale_drawn_rows(const Cpu& cpu, const std::uint8_t* drawn, const std::int64_t* positions, double weight,
                      MatrixView<T> rows) {
  const auto factor = static_cast<T>(weight);
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (rows.rows > 256)
  for (std::int64_t k = 0; k < rows.rows; ++k)
    if (drawn[positions[k]] != 0)
      for (std::int64_t j = 0; j < rows.columns; ++j) rows(k, j) *= factor;
}

template void scale_drawn_rows<float>(const Cpu&, const std::uint8_t*, const std::int64_t*, double,
                                      MatrixView<float>);
template void scale_drawn_rows<double>(const Cpu&, const std::uint8_t*, const std::int64_t*, double,
                                       MatrixView<double>);

}  // namespace espalier
