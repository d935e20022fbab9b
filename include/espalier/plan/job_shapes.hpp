// What a graph and a config make of a job's network, matrix and sampler: their shapes, before any
// of them is there.
#pragma once

#include <cstdint>

#include "espalier/base/config.hpp"
#include "espalier/graph/graph_file.hpp"
#include "espalier/nn/network_shape.hpp"
#include "espalier/sample/sampler.hpp"

namespace espalier {

/// The network of a job on this graph.
NetworkShape network_shape(const GraphInfo& graph, const Config& config);

/// The matrix that a job multiplies by: its model's, or its sampler's own
/// (docs/decisions/006-what-layer-wise-samplers-estimate.md). Throws UserError(kUsage) where the
/// two do not go together.
MatrixForm matrix_form(const Config& config);
/// Has it self-loops that the file need not have?
inline bool adds_self_loops(const Config& config) {
  const auto form = matrix_form(config);
  return form == MatrixForm::kNormalized || form == MatrixForm::kMeanOfSelf;
}
/// Have its entries values beside their columns?
bool matrix_has_values(const GraphInfo& graph, const Config& config);

/// What sampler.*, grid.schedule and model.kind ask for, of the job's model_matrix.
SamplerShape sampler_shape(const Config& config, const Schema& schema, std::int64_t ranks);
/// The same with the seeds that a batch of the task has.
SamplerShape sampler_shape(const Config& config, const GraphInfo& graph, std::int64_t ranks);

/// The same, with what is asked for of a row over all of its relations, or of a layer where the
/// sampler is layer-wise, in place of sampler.fanout.
SamplerShape shape_of_picks(const GraphInfo& graph, const Config& config, std::int64_t ranks);

}  // namespace espalier
