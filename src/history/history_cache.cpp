// A cache of history on the CPU.
#include "espalier/base/philox.hpp"
#include "history_cache.inl.hpp"
#include "history_rows.hpp"
#include "history_state.inl.hpp"

namespace espalier {

HistoryPrecision history_precision_of(const std::string& name) {
  if (name == "fp32") return HistoryPrecision::kFloat32;
  if (name == "fp16") return HistoryPrecision::kFloat16;
  if (name == "uint8") return HistoryPrecision::kUint8;
  usage_error("history rows are stored as fp32, fp16 or uint8, not as {}", name);
}

bool computes_anyway(const HistoryShape& shape, std::int64_t step, std::int64_t batch, int layer,
                     std::int64_t vertex) {
  const RandomStream stream = {shape.seed,
                               Purpose::kRecompute,
                               static_cast<std::uint64_t>(step),
                               static_cast<std::uint64_t>(batch),
                               static_cast<std::uint64_t>(layer),
                               static_cast<std::uint64_t>(vertex)};
  return shape.recompute > 0 && random32(stream, 0) < shape.recompute;
}

std::int64_t history_row_bytes(HistoryPrecision precision, std::int64_t width) {
  const auto bytes = precision == HistoryPrecision::kFloat32   ? 4 * width
                     : precision == HistoryPrecision::kFloat16 ? 2 * width
                                                               : width + 8;
  return (bytes + 3) / 4 * 4;
}

void keep_rows(const Cpu& cpu, HistoryPrecision precision, ConstMatrixView<float> rows,
               const std::int64_t* which, std::int64_t count, std::int64_t words, std::uint32_t* to) {
  with_precision(precision, [&]<HistoryPrecision kPrecision>() {
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
    for (std::int64_t k = 0; k < count; ++k) {
      const auto* const row = rows.row(which[k]);
      ByteScale scale;
      if constexpr (kPrecision == HistoryPrecision::kUint8)
        for (std::int64_t j = 0; j < rows.columns; ++j) scale.take(row[j]);
      for (std::int64_t w = 0; w < words; ++w)
        to[k * words + w] = kept_word<kPrecision>(row, rows.columns, scale, w);
    }
  });
}

void read_rows(const Cpu& cpu, HistoryPrecision precision, const std::uint32_t* kept, std::int64_t words,
               const std::int32_t* slots, const std::int64_t* positions, MatrixView<float> to) {
  with_precision(precision, [&]<HistoryPrecision kPrecision>() {
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
    for (std::int64_t k = 0; k < to.rows; ++k) {
      const auto* const row = kept + slots[positions == nullptr ? k : positions[k]] * words;
      for (std::int64_t j = 0; j < to.columns; ++j) to(k, j) = kept_element<kPrecision>(row, j);
    }
  });
}

void move_rows(const Cpu& cpu, const std::uint32_t* from, const std::int64_t* sources, std::int64_t count,
               std::int64_t words, const std::int64_t* targets, std::uint32_t* to) {
#pragma omp parallel for num_threads(cpu.threads) schedule(static)
  for (std::int64_t k = 0; k < count; ++k)
    std::copy_n(from + (sources == nullptr ? k : sources[k]) * words, words,
                to + (targets == nullptr ? k : targets[k]) * words);
}

template class HistoryCacheOn<Cpu>;

}  // namespace espalier
