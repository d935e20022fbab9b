#include "training_history.inl.hpp"
#include "training_history_state.inl.hpp"

#include "espalier/base/error.hpp"

namespace espalier {

HistoryShape history_shape(const Config& config) {
  HistoryShape shape;
  shape.layers.assign(config.history.layers.begin(), config.history.layers.end());
  if (shape.layers.empty())
    for (int layer = 1; layer < static_cast<int>(config.model.layers); ++layer) shape.layers.push_back(layer);
  shape.width = config.model.hidden;
  shape.precision = history_precision_of(config.history.stored);
  shape.t_stale = config.history.t_stale;
  shape.lag = static_cast<int>(config.history.lag);
  shape.entries = config.history.entries;
  shape.recompute = stable_share(config.history.recompute);
  shape.seed = static_cast<std::uint64_t>(config.train.seed);
  return shape;
}

namespace {

// Draws that depend on their own vertex only, and nothing that must see a sample before its step.
void check_needed_draws(const Config& config) {
  constexpr const char* kDraw = "history.draw = \"needed\"";
  const auto& history = config.history;
  if (sampler_kind_of(config.sampler.kind).layer_wise)
    usage_error(
        "{} with sampler.kind = \"{}\", which draws for a whole layer; use graphsage or labor, or \"all\"",
        kDraw, config.sampler.kind);
  if (memory_of(history) > 0 && history.feature_rows == "belady")
    usage_error(
        "{} with history.feature_rows = \"belady\", which looks at minibatches before their steps; use "
        "\"degree\", or history.memory = \"0\"",
        kDraw);
}

}  // namespace

void check_history(const Config& config) {
  const auto& history = config.history;
  const auto& model = config.model;
  if (history.kind == "none") return;
  if (model.layers < 2)
    usage_error("history.kind = \"{}\" keeps rows of hidden layers, and model.layers is 1; use \"none\"",
                history.kind);
  for (std::size_t k = 0; k < history.layers.size(); ++k)
    if (history.layers[k] >= model.layers || (k > 0 && history.layers[k] <= history.layers[k - 1]))
      usage_error("history.layers names hidden layers 1 .. {}, each once, ascending; not {} at place {}",
                  model.layers - 1, history.layers[k], k + 1);
  if (history_shape(config).layers.size() > 8 && history.scope == "grid")
    usage_error(
        "history.scope = \"grid\" keeps at most 8 hidden layers, and model.layers is {}; name them in "
        "history.layers, or use \"lane\"",
        model.layers);
  if (model.normalize == "batch")
    usage_error(
        "model.normalize = \"batch\" with history.kind = \"{}\": statistics of a batch would be those of the "
        "rows that are left; use \"layer\" or \"none\"",
        history.kind);
  if (model.jumping != "none")
    usage_error("model.jumping with history.kind = \"{}\" needs rows that are not computed; use \"none\"",
                history.kind);
  if (model.edge_features)
    usage_error("model.edge_features with history.kind = \"{}\" is not there yet; leave one out",
                history.kind);
  if (history.draw == "needed") check_needed_draws(config);
  if (history.scope == "lane" && config.sampler.groups > 0)
    usage_error(
        "history.scope = \"lane\" with sampler.groups = {}: ranks keep other batches of a step from step to "
        "step; use \"grid\"",
        config.sampler.groups);
  const auto ahead = config.run.prefetch_steps > 1 ? config.run.prefetch_steps + 1 : 1;
  if (config.run.overlap && history.lag < ahead)
    usage_error(
        "history.lag = {}: with run.overlap and run.prefetch_steps = {} steps begin {} early; use "
        "history.lag "
        "= {}",
        history.lag, config.run.prefetch_steps, ahead, ahead);
}

Counters history_counters() {
  Counters counters;
  for (const auto* name : {"needed_rows", "hits", "recomputed", "input_rows", "edges", "written", "evicted",
                           "input_rows_of_sample", "edges_of_sample"})
    counters.declare({kHistoryGroup, name});
  return counters;
}

template class TrainingHistoryOn<Cpu>;

}  // namespace espalier
