// A thread unpacks a number.
#include "espalier/feature/packed_rows.hpp"

#include "espalier/base/device_array.hpp"
#include "espalier/base/error.hpp"
#include "espalier/base/launch.hpp"

namespace espalier {

void unpack_rows(const Cuda& cuda, const PackingOn<Cuda>& packing, ConstMatrixView<PackedWord, Cuda> from,
                 ConstMatrixView<PackedWord, Cuda> own, const std::int64_t* source,
                 MatrixView<float, Cuda> to) {
  ESPALIER_CHECK(to.columns == packing.columns, "{} columns of packed rows -> {}", packing.columns,
                 to.columns);
  const auto* const least = packing.least.data();
  const auto* const step = packing.step.data();
  const int bits = packing.bits;
  for_each_in_rows(cuda, "unpack_rows", to.rows, to.columns, [=] __device__(std::int64_t k, std::int64_t j) {
    const auto* const row = source[k] < 0 ? own.row(~source[k]) : from.row(source[k]);
    const auto code = packed_code(reinterpret_cast<const std::uint8_t*>(row), j, bits);
    to(k, j) = packed_number(code, least[j], step[j]);
  });
}

}  // namespace espalier
