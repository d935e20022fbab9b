#include "trainer_restart.inl.hpp"

#include <algorithm>

namespace espalier {

std::string remedy_for_divergence(const Config& config) {
  std::string words;
  for (const auto& key : unusual_keys(config))
    words += fmt::format("{}{} {} ({}; {} is {})", words.empty() ? "" : ", then ",
                         key.too_small ? "raise" : "lower", key.name, key.value, key.usual,
                         key.too_small ? "small" : "a lot");
  if (words.empty()) words = fmt::format("lower train.learning_rate ({})", config.train.learning_rate);
  if (config.graph.feature_norm == "none") words += ", or normalise the features (graph.feature_norm)";
  return words;
}

bool note_divergence(const Cpu& cpu, const std::vector<Matrix<float>>& gradients, int* flag) {
  const bool finite = std::ranges::all_of(gradients, [&](const Matrix<float>& gradient) {
    return first_not_finite(cpu, gradient.data.data(), std::ssize(gradient.data)) < 0;
  });
  *flag |= finite ? 0 : 1;
  return !finite;
}

template class StepPipelineOn<Cpu>;
template StepSourceOn<Cpu> steps_of(const TrainingJobOn<Cpu>&);
template class TrainerOn<Cpu>;

}  // namespace espalier
