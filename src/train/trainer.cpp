#include "trainer_restart.inl.hpp"

#include <algorithm>

#include "espalier/nn/softmax_cross_entropy.hpp"

namespace espalier {

void cross_entropy(const Cpu& cpu, const Matrix<float>& logits, const Buffer<std::int32_t>& labels,
                   double scale, Matrix<float>& dlogits, double* loss) {
  *loss = softmax_cross_entropy(cpu, logits, labels, scale, dlogits);
}

bool note_divergence(const Cpu&, const std::vector<Matrix<float>>& gradients, int* flag) {
  const bool finite = std::ranges::all_of(gradients, [](const Matrix<float>& gradient) {
    return std::ranges::all_of(gradient.data, [](float x) { return std::isfinite(x); });
  });
  *flag |= finite ? 0 : 1;
  return !finite;
}

template class TrainerOn<Cpu>;

}  // namespace espalier
