// Every key that scales a step has a value that is already large for its optimiser; what counts is
// how many times that is exceeded.
#include "espalier/train/divergence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace espalier {

namespace {

struct Suspect {
  std::string key;
  double value = 0, large = 0;
  bool raise = false;  // it is too small

  double excess() const { return raise ? large / value : value / large; }
};

std::vector<Suspect> suspects(const Config& config) {
  const auto& train = config.train;
  const bool sgd = train.optimizer == "sgd";
  std::vector<Suspect> all = {{"train.learning_rate", train.learning_rate, sgd ? 1.0 : 0.1},
                              {"train.weight_decay", train.weight_decay, 0.1}};
  if (sgd) all.push_back({"train.momentum", train.momentum, 0.99});
  if (config.model.embedding > 0)
    all.push_back(
        {"train.embedding_rate", train.embedding_rate, train.embedding_optimizer == "adagrad" ? 1.0 : 0.1});
  if (config.history.kind == "replace" && config.history.recompute > 0)
    all.push_back({"history.recompute", config.history.recompute, 0.01, true});
  std::erase_if(all, [](const Suspect& one) { return one.excess() <= 1; });
  std::ranges::stable_sort(all, std::greater(), &Suspect::excess);
  return all;
}

}  // namespace

std::string remedy_for_divergence(const Config& config) {
  std::string words;
  for (const auto& [key, value, large, raise] : suspects(config))
    words += fmt::format("{}{} {} ({}; {} is {})", words.empty() ? "" : ", then ", raise ? "raise" : "lower",
                         key, value, large, raise ? "small" : "a lot");
  if (words.empty()) words = fmt::format("lower train.learning_rate ({})", config.train.learning_rate);
  if (config.graph.feature_norm == "none") words += ", or normalise the features (graph.feature_norm)";
  return words;
}

}  // namespace espalier
