#include "espalier/train/divergence.hpp"

#include <fmt/format.h>

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

}  // namespace espalier
