// Sums down the columns of a matrix that many threads share and that come out the same for any
// number of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "espalier/base/buffer.hpp"
#include "espalier/base/execution.hpp"
#include "espalier/base/host_device.hpp"

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

// What is written once for all spaces; the CUDA implementations are in device_column_sums.hpp.

/// finish(j, sum over i < rows of value(i, j)) for j < width.
template <class Value, class Finish>
void sum_over_rows(const Cpu& cpu, std::int64_t rows, std::int64_t width, const Value& value,
                   const Finish& finish) {
  const auto sums = workspace<struct SumsOfColumns, double>(static_cast<std::size_t>(width));
  sum_over_rows(cpu, rows, sums, [&](std::int64_t i, double* to) {
    for (std::int64_t j = 0; j < width; ++j) to[j] += value(i, j);
  });
  for (std::int64_t j = 0; j < width; ++j) finish(j, sums[static_cast<std::size_t>(j)]);
}

namespace column_sums {

struct KeepNothing {
  template <class Sum>
  ESPALIER_HD void operator()(std::int64_t, std::int64_t, const Sum&) const {}
};

}  // namespace column_sums

/// finish(sum of value(i, j) over all i < rows and j < width): here row by row, on a GPU column by
/// column. When a term is known, keep(i, j, value(i, j)) may write what it was made of.
template <class Value, class Finish, class Keep = column_sums::KeepNothing>
void sum_of_all(const Cpu& cpu, const char* /*name*/, std::int64_t rows, std::int64_t width,
                const Value& value, const Finish& finish, const Keep& keep = {}) {
  double total = 0;
  sum_over_rows(cpu, rows, std::span<double>(&total, 1), [&](std::int64_t i, double* to) {
    for (std::int64_t j = 0; j < width; ++j) {
      const double term = value(i, j);
      *to += term;
      keep(i, j, term);
    }
  });
  finish(total);
}

}  // namespace espalier
