#include "espalier/plan/job_shapes.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "espalier/base/error.hpp"
#include "espalier/feature/input_tables.hpp"
#include "espalier/train/task.hpp"

namespace espalier {

NetworkShape network_shape(const GraphInfo& graph, const Config& config) {
  const bool apart = layer_kind_of(config.model).takes_relations;
  const auto& task = task_kind_of(config.train.task);
  return network_shape(config.model, input_shape(graph, apart, input_tables(graph, config)),
                       task.outputs(graph, config),
                       task.tensors == nullptr ? std::vector<TensorShape>() : task.tensors(graph, config));
}

MatrixForm matrix_form(const Config& config) {
  const auto form = matrix_form(config.model);
  const auto& sampler = sampler_kind_of(config.sampler.kind);
  if (!sampler.reference_mean || config.sampler.mode != "reference") return form;
  if (form == MatrixForm::kSum)
    usage_error(
        "sampler.mode = reference makes {} estimate a mean, and model.kind = {}{} adds its neighbours up; "
        "use "
        "sampler.mode = \"debiased\"",
        sampler.name, config.model.kind,
        config.model.aggregator == "sum" ? " with model.aggregator = sum" : "");
  return MatrixForm::kMeanOfSelf;
}

bool matrix_has_values(const GraphInfo& graph, const Config& config) {
  return graph.weighted || has_own_weights(config.model) || sampler_kind_of(config.sampler.kind).layer_wise;
}

SamplerShape sampler_shape(const Config& config, const Schema& schema, std::int64_t ranks) {
  const bool matrix = has_own_weights(config.model) || sampler_kind_of(config.sampler.kind).layer_wise;
  const auto bulk = static_cast<double>(config.sampler.bulk.value.value_or(ranks));
  auto fanout = config.sampler.fanout;
  if (config.model.layers == 0) fanout = {0};        // of the layer that stands there instead
  if (sampler_kind_of(config.sampler.kind).induces)  // a layer's picks are its batch
    std::ranges::fill(fanout, config.sampler.batch_size);
  return {.fanout = std::move(fanout),
          .relation_fanout = relation_fanouts(config.sampler.relation_fanout, config.sampler.fanout, schema),
          .weighted = config.sampler.weighted && !sampler_kind_of(config.sampler.kind).layer_wise,
          .draw = draw_law_of(config.sampler.draw),
          .aggregation = matrix ? Aggregation::kMatrix : Aggregation::kMean,
          .mode = sampler_mode_of(config.sampler.mode),
          .share_batches = config.sampler.share_batches,
          .schedule = schedule_of(config.grid.schedule),
          .batch_size = config.sampler.batch_size,
          .batches_per_rank = bulk / static_cast<double>(ranks)};
}

SamplerShape sampler_shape(const Config& config, const GraphInfo& graph, std::int64_t ranks) {
  auto shape = sampler_shape(config, graph.schema, ranks);
  shape.batch_size = seeds_of_batch(graph, config);
  return shape;
}

namespace {

// Picks of a row, over all relations: as many as it has entries, as a rule, for most of them have
// fewer than they may.
std::vector<std::int64_t> picks_of_rows(const SamplerShape& shape, const GraphInfo& graph) {
  const auto relations = graph.schema.relations().size();
  const auto mean_degree = (graph.edges + graph.nodes - 1) / std::max<std::int64_t>(1, graph.nodes);
  std::vector<std::int64_t> picks;
  for (std::size_t k = 0; k < shape.fanout.size(); ++k) {
    const auto of_relations = shape.relation_fanout.empty()
                                  ? std::vector<std::int64_t>(relations, shape.fanout[k])
                                  : shape.relation_fanout[k];
    const auto most = std::ranges::max(of_relations),
               sum = std::accumulate(of_relations.begin(), of_relations.end(), std::int64_t{0});
    picks.push_back(std::ranges::min(of_relations) < 0 ? -1 : std::min(sum, std::max(most, mean_degree)));
  }
  return picks;
}

}  // namespace

SamplerShape shape_of_picks(const GraphInfo& graph, const Config& config, std::int64_t ranks) {
  auto shape = sampler_shape(config, graph, ranks);
  if (sampler_kind_of(config.sampler.kind).layer_wise)
    for (std::size_t k = 0; k < shape.fanout.size(); ++k) shape.fanout[k] = most_of_layer(shape, k);
  else if (layer_kind_of(config.model).takes_relations)
    shape.fanout = picks_of_rows(shape, graph);
  return shape;
}

}  // namespace espalier
