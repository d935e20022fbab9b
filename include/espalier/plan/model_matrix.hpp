// The one matrix of a job. Training samples it by sampler_shape (plan/job_shapes.hpp), exact
// evaluation takes whole rows of it by whole_rows_shape (sample/sampler.hpp), and the whole rows
// are what the blocks of training estimate: tests/plan/model_matrix_test.cpp, for every sampler
// and layer.
#pragma once

#include <utility>

#include "espalier/plan/job_shapes.hpp"
#include "espalier/product/dist_csr.hpp"

namespace espalier {

/// A in the form that the model asks for (matrix_form): for means A itself, or the row-normalised A
/// where a layer-wise sampler needs its entries. Collective.
template <class Index>
DistCsr<Index> in_matrix_form(DistCsr<Index> a, const Config& config) {
  const auto form = matrix_form(config);
  if (form == MatrixForm::kMeanOfSelf)
    return normalize_rows(std::move(a), true, config.sampler.weighted || has_own_weights(config.model));
  if (form == MatrixForm::kNormalized) return normalize_with_self_loops(std::move(a));
  if (form == MatrixForm::kSum) return with_values(std::move(a));
  if (sampler_kind_of(config.sampler.kind).layer_wise)
    return normalize_rows(std::move(a), false, config.sampler.weighted);
  return a;
}

/// What holders of pieces of its rows have to know, where rows are cut.
inline WholeRowFacts whole_row_facts(const Config& config, bool typed) {
  if (config.grid.schedule == "pull" || sampler_kind_of(config.sampler.kind).layer_wise)
    return WholeRowFacts::kNone;
  switch (join_of_draws(
      {.fanout = {}, .weighted = config.sampler.weighted, .draw = draw_law_of(config.sampler.draw)}, typed)) {
    case JoinPieces::kConcatenate:
      return WholeRowFacts::kPlaces;
    case JoinPieces::kMerge:
      return has_own_weights(config.model) ? WholeRowFacts::kSupportsOffDiagonal : WholeRowFacts::kSupports;
    default:
      return WholeRowFacts::kNone;
  }
}

/// The matrix that a job multiplies by and whose rows its sampler estimates, from the graph's
/// adjacency matrix A. With sampler.weighted edges of weight 0 are not there, and those whose share
/// of a row float32 has no number for: whoever asks this matrix sees none. Collective.
template <class Index>
DistCsr<Index> model_matrix(DistCsr<Index> a, const Config& config) {
  auto m = in_matrix_form(std::move(a), config);
  const auto facts = whole_row_facts(config, m.columns.typed());
  return count_rows(config.sampler.weighted ? without_zeros(std::move(m)) : std::move(m), facts);
}

}  // namespace espalier
