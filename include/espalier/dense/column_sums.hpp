// Sums down the columns of a matrix that many threads share and that come out the same for any
// number of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "espalier/base/buffer.hpp"
#include "espalier/base/execution.hpp"

namespace espalier {

/// Rows that are summed one after another, before their sum is added to others'.
inline constexpr std::int64_t kSummedRows = 512;

/// sums[j] = sum over rows of what `add_row(i, sums)` adds to its second argument, a double* to
/// `width` numbers. The rows are cut into chunks by a rule that does not know the threads; each
/// chunk is summed in order, then the chunks in order.
template <class AddRow>
void sum_over_rows(const Cpu& cpu, std::int64_t rows, std::span<double> sums, const AddRow& add_row) {
  const std::int64_t chunks = (rows + kSummedRows - 1) / kSummedRows,
                     width = static_cast<std::int64_t>(sums.size());
  double* const partials =
      workspace<struct ColumnPartials, double>(static_cast<std::size_t>(chunks * width)).data();
#pragma omp parallel for num_threads(cpu.threads) schedule(static) if (chunks > 1)
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    double* const partial = partials + chunk * width;
    std::fill_n(partial, width, 0.0);
    for (std::int64_t i = chunk * kSummedRows; i < std::min(rows, (chunk + 1) * kSummedRows); ++i)
      add_row(i, partial);
  }
  std::fill(sums.begin(), sums.end(), 0.0);
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
    for (std::int64_t j = 0; j < width; ++j) sums[j] += partials[chunk * width + j];
}

}  // namespace espalier
