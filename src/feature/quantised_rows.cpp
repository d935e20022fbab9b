// One thread unpacks a row, byte by byte.
#include "espalier/feature/quantised_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "espalier/base/error.hpp"

namespace espalier {

namespace {

const std::uint8_t* bytes_of(const QuantisedWord* row) {
  return reinterpret_cast<const std::uint8_t*>(row);
}

template <int kBits>
void unpack_row(const std::uint8_t* row, const Quantisation& packing, float* to) {
  constexpr int kOfByte = 8 / kBits;
  const double* const least = packing.least.data();
  const double* const step = packing.step.data();
  const auto whole = packing.columns / kOfByte * kOfByte;
  for (std::int64_t j = 0; j < whole; j += kOfByte) {
    const std::uint32_t byte = row[j / kOfByte];
    for (int k = 0; k < kOfByte; ++k)
      to[j + k] = quantised_number(byte >> (k * kBits) & ((1u << kBits) - 1), least[j + k], step[j + k]);
  }
  for (auto j = whole; j < packing.columns; ++j)
    to[j] = quantised_number(quantised_code(row, j, kBits), least[j], step[j]);
}

template <int kBits>
void unpack_all(const Cpu& cpu, const Quantisation& packing, ConstMatrixView<QuantisedWord> from,
                ConstMatrixView<QuantisedWord> own, const std::int64_t* source, MatrixView<float> to) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t k = 0; k < to.rows; ++k)
    unpack_row<kBits>(bytes_of(source[k] < 0 ? own.row(~source[k]) : from.row(source[k])), packing,
                      to.row(k));
}

}  // namespace

Quantisation measure_packing(const RowsInParts& pieces, std::int64_t columns, int bits,
                             const Communicator& comm) {
  constexpr auto kNone = std::numeric_limits<double>::infinity();
  std::vector<double> least(static_cast<std::size_t>(columns), kNone), most(least.size(), -kNone);
  pieces([&](const Matrix<float>& rows) {
    for (std::int64_t i = 0; i < rows.rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        const double x = rows(i, j);
        least[j] = std::min(least[j], x);
        most[j] = std::max(most[j], x);
      }
  });
  comm.all_reduce(std::span<double>(least), Reduction::kMin, "setup");
  comm.all_reduce(std::span<double>(most), Reduction::kMax, "setup");
  Quantisation packing = {.columns = columns, .bits = bits, .least = {}, .step = {}};
  for (std::size_t j = 0; j < least.size(); ++j) {
    const bool some = least[j] <= most[j];
    packing.least.push_back(some ? least[j] : 0);
    packing.step.push_back(some ? (most[j] - least[j]) / ((1 << bits) - 1) : 0);
  }
  return packing;
}

void quantise_rows(const Quantisation& packing, ConstMatrixView<float> rows, MatrixView<QuantisedWord> to) {
  ESPALIER_CHECK(
      rows.columns == packing.columns && to.columns == words_of_quantised(rows.columns, packing.bits),
      "{} columns of {} bits in {} words", rows.columns, packing.bits, to.columns);
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    std::fill_n(to.row(i), to.columns, QuantisedWord());
    auto* const bytes = reinterpret_cast<std::uint8_t*>(to.row(i));
    for (std::int64_t j = 0; j < rows.columns; ++j) {
      const double step = packing.step[j];
      const auto code = step > 0 ? std::nearbyint((rows(i, j) - packing.least[j]) / step) : 0;
      const auto bit = j * packing.bits;
      bytes[bit / 8] |= static_cast<std::uint8_t>(static_cast<std::uint32_t>(code) << (bit % 8));
    }
  }
}

void dequantise_rows(const Cpu& cpu, const Quantisation& packing, ConstMatrixView<QuantisedWord> from,
                     ConstMatrixView<QuantisedWord> own, const std::int64_t* source, MatrixView<float> to) {
  ESPALIER_CHECK(to.columns == packing.columns, "{} columns of quantised rows -> {}", packing.columns,
                 to.columns);
  switch (packing.bits) {
    case 8:
      return unpack_all<8>(cpu, packing, from, own, source, to);
    case 4:
      return unpack_all<4>(cpu, packing, from, own, source, to);
    case 2:
      return unpack_all<2>(cpu, packing, from, own, source, to);
    default:
      return unpack_all<1>(cpu, packing, from, own, source, to);
  }
}

}  // namespace espalier
