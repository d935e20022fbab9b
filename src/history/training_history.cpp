#include "training_history.inl.hpp"
#include "training_history_state.inl.hpp"

#include "espalier/base/error.hpp"

namespace espalier {

HistoryShape history_shape(const Config& config) {
  HistoryShape shape;
  shape.layers = static_cast<int>(config.model.layers) - 1;
  shape.width = config.model.hidden;
  shape.precision = history_precision_of(config.history.stored);
  shape.t_stale = config.history.t_stale;
  shape.entries = config.history.entries;
  shape.recompute = stable_share(config.history.recompute);
  shape.seed = static_cast<std::uint64_t>(config.train.seed);
  return shape;
}

namespace {

// Draws that depend on their own vertex only, and nothing that must see a sample before its step.
void check_needed_draws(const Config& config) {
  constexpr const char* kDraw = "history.draw = \"needed\"";
  if (sampler_kind_of(config.sampler.kind).layer_wise)
    usage_error(
        "{} with sampler.kind = \"{}\", which draws for a whole layer; use graphsage or labor, or \"all\"",
        kDraw, config.sampler.kind);
  if (cache_memory(config.run) > 0 && config.run.cache_policy == "belady")
    usage_error(
        "{} with run.cache_policy = \"belady\", which looks at minibatches before their steps; use "
        "\"degree\", or run.cache_memory = \"0\"",
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
  if (model.layers > 9 && history.scope == "grid")
    usage_error(
        "history.scope = \"grid\" keeps at most 8 hidden layers, and model.layers is {}; use \"lane\"",
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
  if (config.run.overlap && config.run.prefetch_steps > 1)
    usage_error(
        "run.prefetch_steps = {} with history.kind = \"{}\": steps would begin before those have ended "
        "whose rows they read; use 1",
        config.run.prefetch_steps, history.kind);
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
