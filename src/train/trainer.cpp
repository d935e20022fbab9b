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

bool note_divergence(const Cpu&, const std::vector<Matrix<float>>& gradients, int* flag) {
  const bool finite = std::ranges::all_of(gradients, [](const Matrix<float>& gradient) {
    return std::ranges::all_of(gradient.data, [](float x) { return std::isfinite(x); });
  });
  *flag |= finite ? 0 : 1;
  return !finite;
}

template class TrainerOn<Cpu>;

}  // namespace espalier
