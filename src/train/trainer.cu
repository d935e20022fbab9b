#include "trainer_restart.inl.hpp"

#include "tasks.inl.hpp"

namespace espalier {

// Asking for the answer would make the host wait for the step.
bool note_divergence(const Cuda& cuda, const std::vector<Matrix<float, Cuda>>& gradients, int* flag) {
  std::vector<const Matrix<float, Cuda>*> tensors;
  for (const auto& gradient : gradients) tensors.push_back(&gradient);
  note_not_finite(cuda, tensors, flag);
  return false;
}

template class StepPipelineOn<Cuda>;
template StepSourceOn<Cuda> steps_of(const TrainingJobOn<Cuda>&);
template class TrainerOn<Cuda>;

ESPALIER_INSTANTIATE_TASKS(Cuda)

}  // namespace espalier
