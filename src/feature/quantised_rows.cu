// A thread unpacks a number.
#include "espalier/feature/quantised_rows.hpp"

#include "espalier/base/device_array.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

void dequantise_rows(const Cuda& cuda, const QuantisationOn<Cuda>& packing,
                     ConstMatrixView<QuantisedWord, Cuda> from, ConstMatrixView<QuantisedWord, Cuda> own,
                     const std::int64_t* source, MatrixView<float, Cuda> to) {
  ESPALIER_CHECK(to.columns == packing.columns, "{} columns of quantised rows -> {}", packing.columns,
                 to.columns);
  const auto* const least = packing.least.data();
  const auto* const step = packing.step.data();
  const int bits = packing.bits;
  for_each_in_rows(cuda, "dequantise_rows", to.rows, to.columns,
                   [=] __device__(std::int64_t k, std::int64_t j) {
                     const auto* const row = source[k] < 0 ? own.row(~source[k]) : from.row(source[k]);
                     const auto code = quantised_code(reinterpret_cast<const std::uint8_t*>(row), j, bits);
                     to(k, j) = quantised_number(code, least[j], step[j]);
                   });
}

}  // namespace espalier
