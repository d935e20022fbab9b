#include "espalier/nn/sigmoid_cross_entropy.hpp"

#include "espalier/base/error.hpp"
#include "espalier/base/workspace.hpp"

namespace espalier {

template <class T>
double sigmoid_cross_entropy(const Cpu& cpu, const Matrix<T>& logits, std::span<const std::uint8_t> labels,
                             double scale, Matrix<T>& dlogits) {
  ESPALIER_CHECK(labels.size() == logits.data.size(), "{} labels for {} logits", labels.size(),
                 logits.data.size());
  dlogits.resize(logits.rows, logits.columns);
  const auto losses = workspace<struct RowLosses, double>(static_cast<std::size_t>(logits.rows));
#pragma omp parallel for schedule(static) num_threads(cpu.threads) if (logits.rows > 64)
  for (std::int64_t i = 0; i < logits.rows; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < logits.columns; ++j) {
      const auto [loss, gradient] =
          label_loss(static_cast<double>(logits(i, j)), labels[i * logits.columns + j]);
      sum += loss;
      dlogits(i, j) = static_cast<T>(scale * gradient);
    }
    losses[i] = sum;
  }
  double sum = 0;
  for (const double loss : losses) sum += loss;
  return sum;
}

template double sigmoid_cross_entropy<float>(const Cpu&, const Matrix<float>&, std::span<const std::uint8_t>,
                                             double, Matrix<float>&);
template double sigmoid_cross_entropy<double>(const Cpu&, const Matrix<double>&,
                                              std::span<const std::uint8_t>, double, Matrix<double>&);

}  // namespace espalier
