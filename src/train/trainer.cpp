#include "trainer_restart.inl.hpp"

#include <algorithm>

namespace espalier {

bool note_divergence(const Cpu&, const std::vector<Matrix<float>>& gradients, int* flag) {
  const bool finite = std::ranges::all_of(gradients, [](const Matrix<float>& gradient) {
    return std::ranges::all_of(gradient.data, [](float x) { return std::isfinite(x); });
  });
  *flag |= finite ? 0 : 1;
  return !finite;
}

template class TrainerOn<Cpu>;

}  // namespace espalier
