#include "training_history.inl.hpp"
#include "training_history_state.inl.hpp"

#include <bit>

#include "espalier/base/error.hpp"
#include "grid_history.inl.hpp"

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

std::vector<HeldHistory> count_held(const Communicator& world, std::span<const HeldRow> held) {
  constexpr int kAges = 63;  // of floor(log2(age))
  std::int64_t last = 0;
  for (const auto& row : held) last = std::max<std::int64_t>(last, row.layer);
  const auto layers = static_cast<int>(world.all_reduce(last, Reduction::kMax, "report")) + 1;
  std::vector<std::int64_t> rows(static_cast<std::size_t>(layers * kAges));  // [layers, ages]
  for (const auto& row : held) {
    ESPALIER_CHECK(row.age > 0, "a row of age {}", row.age);
    ++rows[row.layer * kAges + std::bit_width(static_cast<std::uint64_t>(row.age)) - 1];
  }
  world.all_reduce(std::span(rows), Reduction::kSum, "report");
  std::vector<HeldHistory> all;
  for (int layer = 0; layer < layers; ++layer)
    for (int age = 0; age < kAges; ++age)
      if (const auto count = rows[layer * kAges + age]; count > 0)
        all.push_back({layer, std::int64_t{1} << age, (std::int64_t{1} << (age + 1)) - 1, count});
  return all;
}

template class GridHistoryOn<Cpu>;
template class TrainingHistoryOn<Cpu>;

}  // namespace espalier
