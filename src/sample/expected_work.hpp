// The one model of what the layers of a sampler ask of the product, before anything was sampled:
// for `schedule = "auto"` and plans that draw nothing. It steers costs, never results.
//
// Rows with about as many entries are one class. A frontier is how likely a row of each class is in
// it; ends of edges fall on rows in proportion to their entries.
//
// And what counting an epoch (counted_work.cpp) shares with estimating one.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "espalier/graph/graph_facts.hpp"
#include "espalier/product/schedule.hpp"
#include "espalier/sample/counted_work.hpp"
#include "espalier/sample/epoch_plan.hpp"
#include "espalier/sample/sampler.hpp"

namespace espalier {

struct RowClass {
  double rows = 0, degree = 0;  ///< how many, and their mean entries
  std::vector<double> picks;    ///< of such a row in each layer, where each row draws
};

struct RowClasses {
  std::vector<RowClass> classes;
  /// The entries of each relation, where each has a fanout of its own.
  std::vector<double> of_relations = {};

  double rows() const;
  double entries() const;
};

/// Exact sums over all rows, the same on every rank. Collective over the process column.
template <class Index>
RowClasses row_classes(const DistCsr<Index>& a, const SamplerShape& shape);
/// The same of degrees alone: a row picks from all of its entries together.
RowClasses row_classes(const DegreeHistogram& degrees, std::span<const std::int64_t> fanout);

struct ExpectedLayers {
  std::vector<ProductWork> work;  ///< of each layer, first: next to the batch
  double input_rows = 0;          ///< of a batch
};

/// Of one rank with `batches` batches of shape.batch_size, in a matrix of so many parts. A sampler
/// that induces has one product for all layers, whose work stands for each.
ExpectedLayers expected_layers(const RowClasses& rows, const SamplerKind& kind, const SamplerShape& shape,
                               int parts, double batches);

/// The schedule of each layer: the one that was asked for, or what the model chooses.
std::vector<Schedule> choose_schedules(const ProductShape& product, const SamplerShape& shape,
                                       const RowClasses& rows, const SamplerKind& kind);
template <class Index, class Space>
std::vector<Schedule> choose_schedules(const DistCsr<Index, Space>& a, const SamplerShape& shape,
                                       const SamplerKind& kind) {
  auto product = shape_of(a);
  product.join = join_of_draws(shape, a.columns.typed());
  return choose_schedules(product, shape, row_classes(a.on_host(), shape), kind);
}

// What counting an epoch (counted_work.cpp) and estimating one (estimated_work.cpp) share.

inline ProductShape product_shape(const PlannedEpoch& job, double rows, double entries, int index_bytes,
                                  int value_bytes) {
  return {.parts = job.parts(),
          .replication = job.replication,
          .rows = rows,
          .entries = entries,
          .index_bytes = index_bytes,
          .value_bytes = value_bytes,
          .cut = job.topology == Topology::kCut,
          .on_gpu = job.on_gpu,
          .join = join_of_draws(job.shape, !job.shape.relation_fanout.empty())};
}

inline bool has_result_values(const PlannedEpoch& job) {
  return sampler_kind_of(job.sampler).has_values(job.shape);
}

/// How many products a window asks for: one for each layer, or one for all.
inline std::size_t products_of(const PlannedEpoch& job) {
  return sampler_kind_of(job.sampler).induces ? 1 : job.shape.fanout.size();
}

inline void size_products(EpochWork& work, const PlannedEpoch& job) {
  for (auto& of_schedule : work.products)
    of_schedule.assign(job.shape.fanout.size(), std::vector<Cost>(job.ranks));
}

/// What becomes in a step of `rows` trainable embeddings that each minibatch reads with this
/// probability.
inline void expect_changes(double probability, const PlannedEpoch& job, EpochWork& work, double rows = 1) {
  const auto one_of = [&](double minibatches) {
    return -std::expm1(minibatches * std::log1p(-std::min(probability, 1 - 1e-12)));
  };
  const auto size = std::min(job.batches_per_step, work.batches), steps = count_batches(work.batches, size),
             late = std::min(job.steps_late, steps);
  const auto per_step = static_cast<double>(size),
             last = static_cast<double>(work.batches - (steps - 1) * size), all = static_cast<double>(steps);
  work.changed_rows += rows * ((all - 1) * one_of(per_step) + one_of(last)) / all;
  // Minibatches after those that changed the row; in an epoch's first steps there are less.
  double corrected = 0;
  for (std::int64_t before = 1; before < late; ++before)
    corrected += per_step * one_of(per_step * static_cast<double>(before));
  if (steps > late) {
    const auto minibatches = static_cast<double>(steps - late - 1) * per_step + last;
    corrected += minibatches * one_of(per_step * static_cast<double>(late));
  }
  work.corrected_rows += rows * probability * corrected / all;
}

}  // namespace espalier
